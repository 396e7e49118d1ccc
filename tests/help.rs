//! What `--help` says is what the command takes.

use crate::support::run;

/// What a flag means differs between commands: one that measures cannot try every segment size, nor more
/// ranks than it starts.
#[test]
fn help_offers_only_what_the_command_takes() {
    for (command, takes_best, beyond) in [
        ("tune", false, false),
        ("verify", false, false),
        ("predict", true, true),
        ("decide", true, true),
    ] {
        let (help, _) = run(0, &[command, "--help"]);
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(help.contains("--segments <LIST|auto>"), takes_best, "{help}");
        assert_eq!(help.contains("more processes than were calibrated"), beyond, "{help}");
        assert_eq!(help.contains("at most the job's ranks"), !beyond, "{help}");
    }
    let (_, refused) = run(2, &["tune", "--segments", "auto"]);
    assert!(refused.contains("--segments <LIST>"), "{refused}");
    let (help, _) = run(0, &["draw", "--help"]);
    assert!(!help.contains("[possible values: measured, fitted, algorithms]"), "{help}");
    assert!(help.contains("[possible values: measured, fitted]"), "no message is timed: {help}");
}

/// `-h` is what most calls need; `--help` has all.
#[test]
fn the_short_help_of_every_command_fits_a_screen() {
    let (all, _) = run(0, &["--help"]);
    let listed = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names.iter().filter(|name| **name != "help").count(), 16, "{all}");
    for name in names {
        let help = |flag: &str| {
            let mut command = crate::support::colibri();
            let output = command.env("COLUMNS", "100").args([name, flag]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let (short, long) = (help("-h"), help("--help"));
        let lines = short.lines().count();
        assert!(lines <= 50, "{name} -h: {lines} lines\n{short}");
        for flag in short.split_whitespace().filter(|word| word.starts_with("--")) {
            assert!(long.contains(flag), "{name} --help lacks {flag}");
        }
    }
}
