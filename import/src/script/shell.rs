//! The commands of a shell script, as far as they can be read off without running it.

use records::FileError;

use crate::Lines;

/// More is no script of a job.
const LONGEST: usize = 1 << 22;
/// What stands for the output of a command, which is not known.
const SUBSTITUTION: &str = "$()";
/// Substitutions within each other whose commands are read; who writes more has made a mistake.
const DEEPEST: u32 = 8;

/// A command with its words still unsplit, without redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// The line that it begins at.
    pub line: u64,
    /// It, on one line, with `$()` for what another command would tell.
    pub text: String,
    /// What is given to it as its input, `<<EOF`.
    pub input: String,
}

/// The commands of a script, and the comments at its beginning, each with its line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ShellText {
    /// Comment lines before the first command.
    pub comments: Vec<(u64, String)>,
    /// All commands, in loops and branches, too.
    pub commands: Vec<ShellCommand>,
}

impl ShellText {
    /// # Errors
    /// The file cannot be read, or is longer than a script.
    pub fn read(lines: &mut Lines<'_>) -> Result<Self, FileError> {
        let mut text = ShellText::default();
        let mut logical = LogicalLine::default();
        // Delimiters of inputs that begin on a line, each with the command that it is for.
        let mut inputs: Vec<(String, usize)> = Vec::new();
        let mut length = 0;
        let mut number = 0;
        while let Some(line) = lines.next_line()? {
            number += 1;
            length += line.len() + 1;
            if length > LONGEST {
                return Err(lines.fault("is longer than 4 MiB; expected the script of a job"));
            }
            if let Some((delimiter, command)) = inputs.first() {
                match line.trim() == delimiter {
                    true => drop(inputs.remove(0)),
                    false => {
                        if let Some(command) = text.commands.get_mut(*command) {
                            command.input += line;
                            command.input.push('\n');
                        }
                    }
                }
                continue;
            }
            if logical.is_empty() && line.trim_start().starts_with('#') {
                if text.commands.is_empty() {
                    text.comments.push((number, line.trim_end().to_owned()));
                }
                continue;
            }
            if logical.add(line, number) {
                text.take(std::mem::take(&mut logical), &mut inputs);
            }
        }
        // A quote that is not closed: the rest is one command.
        text.take(logical, &mut inputs);
        Ok(text)
    }

    fn take(&mut self, logical: LogicalLine, inputs: &mut Vec<(String, usize)>) {
        let mut scanner = Scanner::new(&logical.text, 0);
        scanner.scan();
        for (text, delimiters) in scanner.commands {
            let command = ShellCommand { line: logical.first, text, input: String::new() };
            let place = self.commands.len();
            inputs.extend(delimiters.into_iter().map(|delimiter| (delimiter, place)));
            self.commands.push(command);
        }
    }
}

/// Lines that belong together: continued by a backslash, or within a quote.
#[derive(Default)]
struct LogicalLine {
    first: u64,
    text: String,
    quote: Option<char>,
}

impl LogicalLine {
    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds a line; whether the command is whole with it.
    fn add(&mut self, line: &str, number: u64) -> bool {
        if self.is_empty() {
            self.first = number;
        }
        let mut escaped = false;
        let mut before = ' ';
        for sign in line.chars() {
            match (self.quote, sign) {
                _ if escaped => escaped = false,
                (None | Some('"'), '\\') => escaped = true,
                (None, '#') if before.is_whitespace() => break,
                (None, '\'' | '"') => self.quote = Some(sign),
                (Some(quote), _) if quote == sign => self.quote = None,
                _ => {}
            }
            before = sign;
        }
        match (escaped, self.quote) {
            (true, _) => {
                self.text += line.trim_end_matches('\\');
                // So that an empty line continues, too.
                self.text.push(' ');
                false
            }
            (false, Some(_)) => {
                self.text += line;
                self.text.push('\n');
                false
            }
            (false, None) => {
                self.text += line;
                true
            }
        }
    }
}

/// Parts the text of a logical line into commands.
struct Scanner {
    signs: Vec<char>,
    at: usize,
    text: String,
    delimiters: Vec<String>,
    commands: Vec<(String, Vec<String>)>,
    /// In how many substitutions the text stands.
    depth: u32,
}

impl Scanner {
    fn new(text: &str, depth: u32) -> Self {
        Scanner {
            signs: text.chars().collect(),
            at: 0,
            text: String::new(),
            delimiters: Vec::new(),
            commands: Vec::new(),
            depth,
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.signs.get(self.at + ahead).copied()
    }

    fn scan(&mut self) {
        let mut quote: Option<char> = None;
        while let Some(sign) = self.peek(0) {
            self.at += 1;
            match (quote, sign) {
                (None | Some('"'), '\\') => {
                    self.text.push(sign);
                    self.text.extend(self.peek(0));
                    self.at += 1;
                }
                (None | Some('"'), '$') if self.peek(0) == Some('(') => {
                    self.at += 1;
                    self.substitution(')');
                }
                (None | Some('"'), '`') => self.substitution('`'),
                (None, '\'' | '"') => {
                    quote = Some(sign);
                    self.text.push(sign);
                }
                (Some(open), _) => {
                    if open == sign {
                        quote = None;
                    }
                    self.text.push(if sign == '\n' { ' ' } else { sign });
                }
                (None, '#') if self.text.chars().next_back().is_none_or(char::is_whitespace) => {
                    break;
                }
                (None, '>' | '<') => self.redirection(sign),
                (None, '&') if self.peek(0) == Some('>') => {}
                (None, ';' | '&' | '|' | '(' | ')' | '\n') => self.end(),
                (None, _) => self.text.push(sign),
            }
        }
        self.end();
    }

    /// Leaves out what other commands would tell, up to where they end, and takes these as commands of their own: only
    /// where a program lies is known.
    fn substitution(&mut self, close: char) {
        let mut depth = 1_u32;
        let mut inner = String::new();
        while let Some(sign) = self.peek(0) {
            self.at += 1;
            match sign {
                _ if sign == close => depth -= 1,
                '(' if close == ')' => depth += 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            inner.push(sign);
        }
        let words: Vec<&str> = inner.split_whitespace().collect();
        match words[..] {
            ["which", program] | ["command", "-v", program] => self.text += program,
            _ => {
                self.text += SUBSTITUTION;
                // `$((n * 2))` computes.
                if !inner.starts_with('(') && self.depth < DEEPEST {
                    let mut commands = Scanner::new(&inner, self.depth + 1);
                    commands.scan();
                    self.commands.append(&mut commands.commands);
                }
            }
        }
    }

    /// Leaves out a redirection with its file.
    fn redirection(&mut self, first: char) {
        // The number of the stream before it: `2>`.
        let word = self.text.rsplit(char::is_whitespace).next().unwrap_or_default();
        if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
            self.text.truncate(self.text.len() - word.len());
        }
        let mut marks = String::from(first);
        while let Some(sign @ ('>' | '<' | '&' | '|' | '-')) = self.peek(0) {
            // `<<-EOF`, but `2>-` is a file.
            if sign == '-' && marks != "<<" {
                break;
            }
            marks.push(sign);
            self.at += 1;
        }
        while self.peek(0).is_some_and(|sign| sign == ' ' || sign == '\t') {
            self.at += 1;
        }
        let mut target = String::new();
        let mut quote: Option<char> = None;
        while let Some(sign) = self.peek(0) {
            let ends = sign.is_whitespace() || ";&|()<>".contains(sign);
            match (quote, sign) {
                (None, '\'' | '"') => quote = Some(sign),
                (Some(open), _) if open == sign => quote = None,
                (None, _) if ends => break,
                _ => target.push(sign),
            }
            self.at += 1;
        }
        if marks.starts_with("<<") && marks != "<<<" && !target.is_empty() {
            self.delimiters.push(target.trim_start_matches('\\').to_owned());
        }
        self.text.push(' ');
    }

    fn end(&mut self) {
        let text = std::mem::take(&mut self.text);
        let delimiters = std::mem::take(&mut self.delimiters);
        match text.trim() {
            "" if delimiters.is_empty() => {}
            trimmed => self.commands.push((trimmed.to_owned(), delimiters)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn commands(text: &str) -> Vec<(u64, String)> {
        let mut lines = Lines::new(Path::new("job.sh"), text.as_bytes());
        let read = ShellText::read(&mut lines).unwrap();
        read.commands.into_iter().map(|it| (it.line, it.text)).collect()
    }

    #[test]
    fn commands_are_parted_as_a_shell_parts_them() {
        for (text, wanted) in [
            ("a b; c && d | e\n", &["a b", "c", "d", "e"][..]),
            ("a \\\n  -n 8 \\\n b\n", &["a    -n 8   b"]),
            ("a 'x; y' \"z | z\" # c; d\n", &["a 'x; y' \"z | z\""]),
            ("a x#y > out 2>&1\n", &["a x#y"]),
            ("a &> out & b >>log c\n", &["a", "b   c"]),
            ("n=$(wc -l < $F)\n", &["wc -l", "n=$()"]),
            ("r=$(a | b \"$(c)\"); d `e`\n", &["a", "c", "b \"$()\"", "r=$()", "e", "d $()"]),
            ("R=`which mpirun` S=$(command -v srun)\n", &["R=mpirun S=srun"]),
            ("for n in 2 4; do a $n; done\n", &["for n in 2 4", "do a $n", "done"]),
            ("a \"one\ntwo\" b\n", &["a \"one two\" b"]),
            ("a $((2*(3+4)))\n", &["a $()"]),
            ("a \\; b\n", &["a \\; b"]),
        ] {
            let told: Vec<String> = commands(text).into_iter().map(|(_, text)| text).collect();
            assert_eq!(told, wanted, "{text}");
        }
        let lines: Vec<u64> =
            commands("# c\na \\\n b\n\n c\n").into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 5]);
    }

    /// It would take memory and time of the square of its length, and a place on the stack for each.
    #[test]
    fn very_deep_substitutions_are_not_followed() {
        let text = format!("x={}{}\na $(b $(c))\n", "$(".repeat(200_000), ")".repeat(200_000));
        let found = commands(&text);
        assert!(found.len() < 20, "{}", found.len());
        assert_eq!(found.last().unwrap(), &(2, "a $()".to_owned()));
    }

    #[test]
    fn what_is_given_to_a_command_is_no_command() {
        let text = "cat > hosts <<EOF\nmpirun -n 4 a\nEOF\nb <<-'END' c\n\tx\n\tEND\nd\n";
        let mut lines = Lines::new(Path::new("job.sh"), text.as_bytes());
        let read = ShellText::read(&mut lines).unwrap();
        let told: Vec<(&str, &str)> =
            read.commands.iter().map(|it| (it.text.as_str(), it.input.as_str())).collect();
        assert_eq!(told, [("cat", "mpirun -n 4 a\n"), ("b   c", "\tx\n"), ("d", "")]);
    }

    #[test]
    fn comments_count_up_to_the_first_command() {
        let text = "#!/bin/sh\n#SBATCH -n 4\na\n#SBATCH -n 8\n";
        let mut lines = Lines::new(Path::new("job.sh"), text.as_bytes());
        let read = ShellText::read(&mut lines).unwrap();
        assert_eq!(read.comments, [(1, "#!/bin/sh".to_owned()), (2, "#SBATCH -n 4".to_owned())]);
    }
}
