use models::{Forms, Model, presets};
use records::{
    Algorithm, Collective, Method, Plugin, nearest, progress::Progress, quantity, unknown,
};

use crate::{Answer, Inputs, Parser};

const SAMPLES: &[&str] = &[
    "8KiB",
    "1 MiB",
    "1..8MiB",
    "0,1KiB,64KiB",
    "2..32",
    "4,8,16",
    "90s",
    "1.5m",
    "500ms",
    "2h",
    "bcast",
    "reduce_scatter_block",
    "splitted-binary",
    "own:pipeline,segment=8KiB",
    "native:openmpi:k-chain",
    "native:mpich:ring",
    "native:intel:binomial",
    "default",
    "mockup:bcast_as_scatter_allgather",
    "plugin:/opt/lib/libmine.so:MPIB_Bcast_x,suboptions=sgv=1",
    "hockney",
    "refined",
    "corrected",
    "frodo",
    "{\"step\":\"round trips\",\"done\":3,\"of\":8}",
];

const WORDS: &[&str] = &[
    "KiB",
    "MiB",
    "GiB",
    "TiB",
    "B",
    "..",
    ",",
    "ms",
    "s",
    "m",
    "h",
    "own:",
    "native:",
    "openmpi:",
    "mpich:",
    "plugin:",
    "mockup:",
    "_as_",
    "segment=",
    "form=",
    "suboptions=",
    "linear",
    "ring",
    "bcast",
    "MPIB_Scatterv",
    "loggp",
    "printed",
    "boba",
    "done",
    "of",
];

/// Words and numbers as people write them in flags, files and variables.
pub fn words() -> Parser {
    let samples = SAMPLES.iter().map(|sample| sample.as_bytes().to_vec()).collect();
    Parser { name: "words", samples, words: WORDS, inputs: Inputs::SMALL, read }
}

fn read(input: &[u8]) -> Answer {
    let text = &*String::from_utf8_lossy(input);
    let answers = [quantities(text), names(text), methods(text)];
    match answers.contains(&Answer::Accepted) {
        true => Answer::Accepted,
        false => Answer::Refused,
    }
}

/// Accepted or refused with a word.
fn answer<T, E: std::fmt::Display>(read: Result<T, E>, then: impl FnOnce(T)) -> Answer {
    match read {
        Ok(value) => {
            then(value);
            Answer::Accepted
        }
        Err(error) => super::refused_with(&error),
    }
}

fn quantities(text: &str) -> Answer {
    let bytes = answer(quantity::parse_bytes(text), |bytes| {
        for written in [quantity::compact_bytes(bytes), quantity::format_bytes(bytes)] {
            assert_eq!(quantity::parse_bytes(&written), Ok(bytes));
        }
    });
    let ascend = |ascending: bool| assert!(ascending, "a list that does not ascend");
    let sizes = answer(quantity::parse_sizes(text), |sizes| {
        ascend(!sizes.is_empty() && sizes.is_sorted_by(|a, b| a < b));
    });
    let procs = answer(quantity::parse_procs(text), |procs| {
        ascend(!procs.is_empty() && procs[0] > 0 && procs.is_sorted_by(|a, b| a < b));
    });
    let duration = answer(quantity::parse_duration(text), |duration| {
        assert!(!quantity::format_seconds(duration.as_secs_f64()).is_empty());
    });
    if let Ok(seconds) = text.parse::<f64>() {
        let _ = quantity::format_seconds(seconds);
    }
    any(&[bytes, sizes, procs, duration])
}

fn names(text: &str) -> Answer {
    let collective = answer(text.parse::<Collective>(), |it| assert_eq!(it.name(), text));
    let algorithm = answer(text.parse::<Algorithm>(), |it| assert_eq!(it.name(), text));
    let model = answer(text.parse::<Model>(), |it| assert_eq!(it.name(), text));
    let forms = answer(text.parse::<Forms>(), |_| ());
    let preset = answer(presets::preset(text), |calibration| super::reads_back(&calibration));
    let progress = match Progress::parse(text) {
        Some(progress) => {
            assert_eq!(Progress::parse(&progress.line()), Some(progress));
            Answer::Accepted
        }
        None => Answer::Refused,
    };
    let known = ["bcast", "reduce"];
    assert!(unknown("word", text, &known).contains("known"));
    assert!(nearest(text, known).is_none_or(|near| known.contains(&near)));
    any(&[collective, algorithm, model, forms, preset, progress])
}

fn methods(text: &str) -> Answer {
    let method = answer(text.parse::<Method>(), |method| {
        assert_eq!(method.to_string().parse(), Ok(method.clone()), "another method is read back");
        let _ = (method.short(), method.algorithm(), method.segment_bytes());
        if let Method::Plugin(plugin) = &method {
            let _ = plugin.collective();
            let parts = [plugin.library(), plugin.symbol(), plugin.suboptions()];
            assert!(Plugin::new(parts[0], parts[1], parts[2]).is_ok());
        }
        if let Method::Own(method) = &method {
            for collective in Collective::ALL {
                if let Ok(runnable) = runner::ScheduledMethod::new(collective, method) {
                    assert_eq!(runnable.to_string(), method.to_string());
                    let _ = runnable.check_ranks(7);
                }
            }
        }
    });
    let mockup = match runner::mockups::find(text) {
        Ok(mockup) => {
            assert_eq!(mockup.name, text);
            Answer::Accepted
        }
        Err(error) => super::refused_with(&error),
    };
    any(&[method, mockup])
}

fn any(answers: &[Answer]) -> Answer {
    if answers.contains(&Answer::Accepted) { Answer::Accepted } else { Answer::Refused }
}
