use super::*;
use std::fs;

use crate::observation::{ObservationStatus, PointToPoint, PointToPointKind};
use proptest::prelude::*;

fn row(repetition: u32) -> PointToPoint {
    PointToPoint {
        kind: PointToPointKind::RoundTrip,
        sender: 0,
        receiver: 1,
        bytes: 1024,
        messages: 1,
        job: 0,
        visit: 3,
        repetition,
        seconds: 0.000_123_456_789,
        status: ObservationStatus::Ok,
    }
}

fn written(rows: u32) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("observations.csv");
    let header = BTreeMap::from([("platform".into(), "two\nlines".into())]);
    let mut writer = Writer::open(&path, &header).unwrap();
    (0..rows).for_each(|repetition| writer.append(&row(repetition)).unwrap());
    (dir, path)
}

#[test]
fn what_is_appended_reads_back() {
    let (_dir, path) = written(3);
    let record = read::<PointToPoint>(&path).unwrap();
    assert_eq!(record.rows, [row(0), row(1), row(2)]);
    assert_eq!(record.header["platform"], "two lines");
    assert_eq!(record.torn, 0);
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_that_names_line_and_field() {
    let (_dir, path) = written(3);
    let text = fs::read_to_string(&path).unwrap().replacen(",1024,", ",x,", 1);
    let error = parse::<PointToPoint>(&text, &path).unwrap_err().to_string();
    assert!(error.contains("line 4, field bytes"), "{error}");
}

#[test]
fn lines_are_split_as_a_csv_reader_of_their_own_splits_them() {
    let mut splitter = Splitter::new();
    for line in ["a,b,c", "", ",", "\"x,y\",2,", "\"a\"\"b\",1", "\"open,1", "1,\"\u{e9}\",3"] {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
        let wanted = reader.records().next().map(Result::unwrap).unwrap_or_default();
        assert_eq!(splitter.fields(line), wanted, "{line}");
    }
}

#[test]
fn a_quotation_mark_that_is_not_closed_is_named_with_its_line_and_field() {
    for line in ["a,b", "", "\"x,y\",2,", "\"a\"\"b\",1", "5\" disk,2", "\"\",\"\"", "\"a\"b\",c"] {
        assert_eq!(check_quotes(line, ','), Ok(()), "{line}");
    }
    for (line, field) in [("\"a,b", 1), ("a,\"", 2), ("a,\"b\"\",c", 2), ("\"a\",b,\"c\"\"", 3)] {
        let wanted =
            format!("a quotation mark opens in field {field} of this line and none closes it");
        assert!(check_quotes(line, ',').unwrap_err().starts_with(&wanted), "{line}");
    }
    assert!(check_quotes("a;\"b", ';').unwrap_err().contains("field 2"));
    let (_dir, path) = written(3);
    for (from, field) in [(",1024,", 4), (",ok\n", 10)] {
        let wrong = from.replacen(',', ",\"", 1);
        let text = fs::read_to_string(&path).unwrap().replacen(from, &wrong, 1);
        let error = parse::<PointToPoint>(&text, &path).unwrap_err().to_string();
        assert!(
            error.contains(&format!("line 4: a quotation mark opens in field {field} ")),
            "{error}"
        );
    }
}

#[test]
fn a_number_that_is_none_is_an_error_that_names_it() {
    let (_dir, path) = written(3);
    let text = fs::read_to_string(&path).unwrap();
    for (from, to, wanted) in [
        ("0.000123456789", "1e400", "line 4, field seconds: is inf; expected"),
        ("0.000123456789", "NaN", "line 4, field seconds: is NaN; expected"),
        ("0.000123456789", "1.7e308", "line 4, field seconds: is 1.7e308; expected"),
        ("0.000123456789", "1e-320", "line 4, field seconds: is 1e-320; expected 0 or"),
        (",1024,1,", ",1024,0,", "line 4, field messages: is 0; expected 1 or more"),
    ] {
        assert!(text.contains(from));
        let text = text.replacen(from, to, 1);
        let error = parse::<PointToPoint>(&text, &path).unwrap_err().to_string();
        assert!(error.contains(wanted), "{to}: {error}");
    }
    // A line that was cut is none, whatever it says.
    let cut = text.trim_end().to_owned() + "\nround-trip,0,1,1,0,0,0,0,1e400,ok";
    assert_eq!(parse::<PointToPoint>(&cut, &path).unwrap().torn, 1);
}

#[test]
fn a_file_of_another_kind_is_named_by_it() {
    let path = Path::new("x.csv");
    let error = |text: &str| parse::<PointToPoint>(text, path).unwrap_err().to_string();
    assert_eq!(
        error("#@schema=colibri/measurements/1\nvisit,collective\n"),
        "x.csv: is a measurements record; expected colibri/observations/2"
    );
    assert_eq!(error(""), "x.csv: is empty; expected colibri/observations/2");
}

#[test]
fn the_last_note_counts_unless_it_was_cut() {
    let (_dir, path) = written(1);
    let mut writer = Writer::<PointToPoint>::open(&path, &BTreeMap::new()).unwrap();
    writer.note("spent_seconds", "1.5").unwrap();
    writer.note("spent_seconds", "23.5").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let spent =
        |text: &str| parse::<PointToPoint>(text, &path).unwrap().header["spent_seconds"].clone();
    assert_eq!(spent(&text), "23.5");
    assert_eq!(spent(text.strip_suffix("3.5\n").unwrap()), "1.5");
    assert_eq!(parse::<PointToPoint>(&text, &path).unwrap().rows, [row(0)]);
}

proptest! {
    /// Wherever a kill cuts the file, the next run appends, the old bytes stay, and no
    /// observation is invented or changed.
    #[test]
    fn a_record_cut_anywhere_is_resumed(cut in 0_usize..400) {
        let (_dir, path) = written(3);
        let whole = fs::read(&path).unwrap();
        let cut = cut.min(whole.len());
        fs::write(&path, &whole[..cut]).unwrap();
        let before = match read::<PointToPoint>(&path) {
            Ok(record) => record.rows,
            Err(_) => Vec::new(), // cut inside the header: nothing was observed
        };
        let mut writer = Writer::open(&path, &BTreeMap::new()).unwrap();
        writer.append(&row(9)).unwrap();
        let after = fs::read(&path).unwrap();
        prop_assert_eq!(&after[..cut], &whole[..cut]);
        let record = read::<PointToPoint>(&path).unwrap();
        let mut wanted = before;
        wanted.push(row(9));
        prop_assert_eq!(record.rows, wanted);
    }
}
