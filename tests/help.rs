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
    assert!(!help.contains("algorithms]"), "constants of algorithms time no message: {help}");
}
