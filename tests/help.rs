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
        assert_eq!(help.contains("more ranks than were calibrated"), beyond, "{help}");
        assert_eq!(help.contains("at most the job's ranks"), !beyond, "{help}");
    }
    let (_, refused) = run(2, &["tune", "--segments", "auto"]);
    assert!(refused.contains("--segments <LIST>"), "{refused}");
    let (help, _) = run(0, &["draw", "--help"]);
    assert!(!help.contains("[possible values: measured, fitted, algorithms]"), "{help}");
    assert!(help.contains("[possible values: measured, fitted]"), "no message is timed: {help}");
}

/// Who names no model reads in the help which are taken; who names no budget, what it may be.
#[test]
fn help_names_default_models_and_the_limits_of_budgets() {
    let help = |command: &str, flag: &str| {
        run(0, &[command, flag]).0.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (command, models) in [
        (
            "predict",
            "[default: hockney, logp, loggp, plogp; refined for collectives that none of these knows]",
        ),
        ("decide", "[default: hockney, loggp, plogp]"),
        ("explain", "[default: hockney, loggp, plogp, refined]"),
        ("verify", "[default: hockney, loggp, plogp, refined]"),
    ] {
        for flag in ["-h", "--help"] {
            let text = help(command, flag);
            assert!(text.contains(models), "{command}: {text}");
        }
    }
    for command in ["tune", "calibrate", "verify", "guidelines", "check", "bench"] {
        let text = help(command, "--help");
        assert!(text.contains("1ms to 10000h"), "{command}: {text}");
    }
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
