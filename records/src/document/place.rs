//! Where in a JSON text a value stands that a reader refuses.
//!
//! serde keeps what is flattened, or read by a tag, until the whole object is read: its error then has the line of the
//! object's end, and no field. The value is found by trial instead. What is marked as wrong before the fault changes the
//! error, and what is marked behind it does not: the last mark that changes it stands at the fault.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// Objects with more entries are not searched.
const MAX_ENTRIES: usize = 200;

/// A step from a value to one in it.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

/// The field of a value, as messages name it, and its line.
#[derive(Debug, PartialEq)]
pub(super) struct Place {
    pub field: String,
    pub line: u64,
}

/// The line of a field, or of the deepest that is there of those in which it lies; nothing where none is.
pub(super) fn line_of(text: &str, field: &str) -> Option<u64> {
    let (steps, found) = deepest(text, field)?;
    (!steps.is_empty()).then(|| line_at(text, offset(text, found)))
}

/// The value for which `T` refuses a text, where it lies deeper than `field`, in which the reader ended.
pub(super) fn deeper_fault<T: DeserializeOwned>(text: &str, field: &str) -> Option<Place> {
    let (mut steps, _) = deepest(text, field)?;
    let value: Value = serde_json::from_str(text).ok()?;
    let fault = T::deserialize(&value).err()?.to_string();
    let mut search = Search::<T> { value, fault, reader: std::marker::PhantomData };
    let missing = backticked(&search.fault, "missing field `");
    let unknown = backticked(&search.fault, "unknown field `");
    let at = steps.len();
    let is_missing_here = |search: &mut Search<T>, steps: &[Step]| {
        missing.as_ref().is_some_and(|name| search.lacks(steps, name))
    };
    while !is_missing_here(&mut search, &steps) {
        let Some(step) = search.faulty_entry(&steps) else { break };
        steps.push(step);
    }
    if let (Some(name), Some(Value::Object(entries))) = (&unknown, search.at(&steps))
        && entries.contains_key(name)
    {
        steps.push(Step::Key(name.clone()));
    }
    // Without the object that lacks the field, the search has lost its way.
    if steps.len() == at || (missing.is_some() && !is_missing_here(&mut search, &steps)) {
        return None;
    }
    let found = find(text, &steps)?;
    // What is missing is told at the object's end, where serde does.
    let place = offset(text, found) + missing.map_or(0, |_| found.get().len());
    Some(Place { field: in_words(&steps), line: line_at(text, place) })
}

/// A text that `T` refuses, as a tree in which values are marked.
struct Search<T> {
    value: Value,
    fault: String,
    reader: std::marker::PhantomData<T>,
}

impl<T: DeserializeOwned> Search<T> {
    fn at(&mut self, steps: &[Step]) -> Option<&mut Value> {
        steps.iter().try_fold(&mut self.value, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        })
    }

    /// The entry in which the fault lies; nothing where it is of the whole.
    fn faulty_entry(&mut self, steps: &[Step]) -> Option<Step> {
        match self.at(steps)? {
            Value::Array(elements) => {
                let count = elements.len();
                self.faulty_element(steps, count).map(Step::Index)
            }
            Value::Object(entries) if entries.len() <= MAX_ENTRIES => {
                let keys = entries.keys().cloned().collect();
                self.faulty_key(steps, keys).map(Step::Key)
            }
            _ => None,
        }
    }

    /// Elements are read one after the other.
    fn faulty_element(&mut self, steps: &[Step], count: usize) -> Option<usize> {
        let (mut changing, mut end) = (0, count);
        while changing < end {
            let middle = changing.midpoint(end);
            match self.changes_marked(steps, &[Step::Index(middle)]) {
                true => changing = middle + 1,
                false => end = middle,
            }
        }
        // A fault of the list as a whole comes after all its elements.
        let Value::Array(elements) = self.at(steps)? else { return None };
        let marked = mark(elements.last().unwrap_or(&Value::Null), 0);
        elements.push(marked);
        let is_of_the_whole = self.error().as_ref() != Some(&self.fault);
        if let Some(Value::Array(elements)) = self.at(steps) {
            elements.pop();
        }
        if is_of_the_whole { None } else { changing.checked_sub(1) }
    }

    /// Entries are read in any order.
    fn faulty_key(&mut self, steps: &[Step], keys: Vec<String>) -> Option<String> {
        let mut read_before = Vec::new();
        for key in keys {
            if self.changes_marked(steps, &[Step::Key(key.clone())]) {
                read_before.push(key);
            }
        }
        // A fault of a key, or of the whole, needs what is read after them.
        let whole = self.at(steps)?.clone();
        if let Value::Object(entries) = self.at(steps)? {
            entries.retain(|key, _| read_before.contains(key));
        }
        let is_inside = self.error().as_ref() == Some(&self.fault);
        *self.at(steps)? = whole;
        if !is_inside {
            return None;
        }
        // Each error names the first mark; without it, the next.
        while read_before.len() > 1 {
            let marked: Vec<Step> = read_before.iter().cloned().map(Step::Key).collect();
            let first = self.error_marked(steps, &marked).and_then(|error| {
                (0..marked.len())
                    .find(|index| marks(*index).iter().any(|mark| error.contains(mark)))
            });
            match first {
                Some(first) => drop(read_before.remove(first)),
                None => break,
            }
        }
        read_before.pop()
    }

    /// Whether the object there lacks the entry that the fault is about.
    fn lacks(&mut self, steps: &[Step], key: &str) -> bool {
        let Some(Value::Object(entries)) = self.at(steps) else { return false };
        if entries.contains_key(key) {
            return false;
        }
        entries.insert(key.into(), Value::Array(Vec::new()));
        let changed = self.error().as_ref() != Some(&self.fault);
        if let Some(Value::Object(entries)) = self.at(steps) {
            entries.shift_remove(key);
        }
        changed
    }

    fn changes_marked(&mut self, steps: &[Step], entries: &[Step]) -> bool {
        self.error_marked(steps, entries).as_ref() != Some(&self.fault)
    }

    /// What is refused where these entries of a value are marked.
    fn error_marked(&mut self, steps: &[Step], entries: &[Step]) -> Option<String> {
        let paths: Vec<Vec<Step>> =
            entries.iter().map(|entry| [steps, std::slice::from_ref(entry)].concat()).collect();
        let mut unmarked = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let value = self.at(path)?;
            let marked = mark(value, index);
            unmarked.push(std::mem::replace(value, marked));
        }
        let error = self.error();
        for (path, value) in paths.iter().zip(unmarked) {
            *self.at(path)? = value;
        }
        error
    }

    fn error(&self) -> Option<String> {
        T::deserialize(&self.value).err().map(|error| error.to_string())
    }
}

/// What no field takes that takes the value: a number for a text, a text for all else.
fn mark(value: &Value, index: usize) -> Value {
    let [text, number] = marks(index);
    match value {
        Value::String(_) => number.parse::<f64>().map_or(Value::Null, Value::from),
        _ => Value::String(text),
    }
}

/// A mark as text and as number, as messages quote them.
fn marks(index: usize) -> [String; 2] {
    [format!("<mark {index}>"), format!("-{}.25", 987_654_321 + index)]
}

/// The name in a message of serde's that begins so.
fn backticked(message: &str, beginning: &str) -> Option<String> {
    Some(message.strip_prefix(beginning)?.split('`').next()?.to_owned())
}

/// As `serde_path_to_error` has it.
fn in_words(steps: &[Step]) -> String {
    let mut words = String::new();
    for step in steps {
        match step {
            Step::Index(index) => words += &format!("[{index}]"),
            Step::Key(key) if words.is_empty() => words += key,
            Step::Key(key) => words += &format!(".{key}"),
        }
    }
    words
}

fn offset(text: &str, value: &RawValue) -> usize {
    value.get().as_ptr() as usize - text.as_ptr() as usize
}

fn line_at(text: &str, offset: usize) -> u64 {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

/// The deepest value on the way to a field, with the way.
fn deepest<'a>(text: &'a str, field: &str) -> Option<(Vec<Step>, &'a RawValue)> {
    let mut value: &RawValue = serde_json::from_str(text).ok()?;
    let mut steps = Vec::new();
    let mut rest = if field == "." { "" } else { field };
    while let Some((step, entry, after)) = entry_on_the_way(value, rest) {
        steps.push(step);
        (value, rest) = (entry, after.strip_prefix('.').unwrap_or(after));
    }
    Some((steps, value))
}

/// The entry of a value with which a field's name begins, and what is left of the name. A key may have points in it.
fn entry_on_the_way<'a, 'b>(
    value: &'a RawValue,
    field: &'b str,
) -> Option<(Step, &'a RawValue, &'b str)> {
    if let Some((index, rest)) = field.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let index = index.parse().ok()?;
        return Some((Step::Index(index), element(value, index)?, rest));
    }
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    let entries = entries(value)?;
    let named = entries.into_iter().filter_map(|(key, entry)| {
        let rest = field.strip_prefix(&key).filter(|rest| ends(rest))?;
        (!key.is_empty()).then_some((Step::Key(key), entry, rest))
    });
    named.min_by_key(|(_, _, rest)| rest.len())
}

fn find<'a>(text: &'a str, steps: &[Step]) -> Option<&'a RawValue> {
    let whole: &RawValue = serde_json::from_str(text).ok()?;
    steps.iter().try_fold(whole, |value, step| match step {
        Step::Index(index) => element(value, *index),
        Step::Key(key) => entries(value)?.into_iter().find(|(name, _)| name == key).map(|it| it.1),
    })
}

fn element(value: &RawValue, index: usize) -> Option<&RawValue> {
    serde_json::from_str::<Vec<&RawValue>>(value.get()).ok()?.get(index).copied()
}

fn entries(value: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    serde_json::from_str::<Entries>(value.get()).ok().map(|entries| entries.0)
}

/// An object's entries, in their order.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(EntriesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::document::{self, Document};

    #[derive(Debug, Serialize, Deserialize)]
    struct Whole {
        name: String,
        #[serde(flatten)]
        first: First,
        parts: Vec<Part>,
        #[serde(flatten)]
        second: Second,
    }
    #[derive(Debug, Serialize, Deserialize)]
    struct First {
        count: u32,
        nested: Nested,
    }
    #[derive(Debug, Serialize, Deserialize)]
    struct Nested {
        low: f64,
        list: Vec<u32>,
        pair: [f64; 2],
    }
    #[derive(Debug, Serialize, Deserialize)]
    struct Second {
        title: String,
        kind: Kind,
    }
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(tag = "is", rename_all = "snake_case")]
    enum Kind {
        Known { value: f64 },
    }
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part {
        own: u32,
        #[serde(flatten)]
        nested: Nested,
    }

    impl Document for Whole {
        const SCHEMA: &'static str = "colibri/whole/1";

        fn validate(&self) -> Result<(), (String, String)> {
            match self.parts.iter().position(|part| part.own > 9) {
                None => Ok(()),
                Some(index) => Err((format!("parts[{index}].own"), "is above 9".into())),
            }
        }
    }

    const RIGHT: &str = r#"{
 "schema": "colibri/whole/1",
 "title": "the title",
 "count": 1,
 "nested": {
  "low": 0.5,
  "list": [
   2,
   3,
   4
  ],
  "pair": [0.25, 0.75]
 },
 "name": "the name",
 "kind": {
  "is": "known",
  "value": 5.5
 },
 "parts": [
  {"own": 6, "low": 1.5, "list": [], "pair": [1.25, 1.75]},
  {
   "own": 7,
   "low": 2.5,
   "list": [8],
   "pair": [
    2.25,
    2.75
   ]
  }
 ]
}
"#;

    #[test]
    fn faults_of_what_is_flattened_are_named_with_line_and_field() {
        document::parse::<Whole>(RIGHT, Path::new("w")).unwrap();
        for (from, to, wanted) in [
            (
                "\"the title\"",
                "8",
                "w, line 3, field title: invalid type: integer `8`, expected a string",
            ),
            (
                "\"count\": 1",
                "\"count\": -1",
                "w, line 4, field count: invalid value: integer `-1`",
            ),
            (
                "\"count\": 1",
                "\"count\": {\"x\": [1]}",
                "w, line 4, field count: invalid type: object",
            ),
            ("0.5,", "true,", "w, line 6, field nested.low: invalid type: boolean `true`"),
            ("0.5,", "\"<mark 0>\",", "w, line 6, field nested.low: invalid type: string"),
            (
                "   3",
                "   3.5",
                "w, line 9, field nested.list[1]: invalid type: floating point `3.5`",
            ),
            (
                "[0.25, 0.75]",
                "[0.25]",
                "w, line 12, field nested.pair: is a list, expected an array of length 2",
            ),
            ("[0.25, 0.75]", "[0.25, []]", "w, line 12, field nested.pair[1]: invalid type: list"),
            ("\"known\"", "\"other\"", "w, line 16, field kind.is: unknown variant `other`"),
            ("5.5", "\"5.5\"", "w, line 17, field kind.value: invalid type: string \"5.5\""),
            ("\"value\"", "\"valeu\"", "w, line 18, field kind: missing field `value`"),
            ("\"low\": 0.5", "\"lo\": 0.5", "w, line 13, field nested: missing field `low`"),
            ("\"the name\"", "7", "w, line 14, field name: invalid type: integer `7`"),
            ("\"own\": 6", "\"own\": []", "w, line 20, field parts[0].own: invalid type: list"),
            (
                "1.5",
                "null",
                "w, line 20, field parts[0].low: invalid type: null, expected a number",
            ),
            ("[8]", "[8, \"8\"]", "w, line 24, field parts[1].list[1]: invalid type: string \"8\""),
            (
                "    2.75",
                "    \"x\"",
                "w, line 27, field parts[1].pair[1]: invalid type: string \"x\"",
            ),
            (
                "\"own\": 7,",
                "\"own\": 7,\n\"onw\": 7,",
                "w, line 23, field parts[1].onw: unknown field `onw`",
            ),
            ("\"own\": 7", "\"own\": 17", "w, line 22, field parts[1].own: is above 9"),
            ("\"count\": 1", "\"cuont\": 1", "w, line 31: missing field `count`"),
        ] {
            let text = RIGHT.replacen(from, to, 1);
            assert_ne!(text, RIGHT, "{from}");
            let error = document::parse::<Whole>(&text, Path::new("w")).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{from} -> {to}: {error}\nnot: {wanted}");
        }
    }

    #[test]
    fn keys_with_points_and_fields_that_are_not_there_have_the_line_of_the_deepest() {
        let text = "{\"a.b\": {\n\"c\": [1,\n2]}}";
        let line = |field| line_of(text, field);
        assert_eq!(
            ["a.b", "a.b.c", "a.b.c[1]", "a.b.c[1].d", "a.b.e"].map(line),
            [1, 2, 3, 3, 1].map(Some)
        );
        assert_eq!(["x", "a", "", ".", "[0]"].map(line), [None; 5]);
    }

    #[test]
    fn a_long_list_is_searched_in_few_steps() {
        let mut list = vec!["1"; 100_000];
        list[77_345] = "null";
        let text = RIGHT.replacen("2,\n   3,", &format!("{},\n", list.join(",\n")), 1);
        let error = document::parse::<Whole>(&text, Path::new("w")).unwrap_err().to_string();
        assert!(error.starts_with("w, line 77353, field nested.list[77345]: "), "{error}");
    }
}
