//! A report in a browser: what the page's script does on clicks and keys.

use std::{fs, process::Command};

use crate::{frozen, skipped::skipped};

/// What a person does on the page. Each step says what is then to be seen, in a list at the end.
const PERSON: &str = include_str!("exploring.html");

/// The page as the browser holds it when all scripts have run; nothing where there is no browser.
fn in_browser(test: &str, page: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    fs::write(&path, page).unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(["--dump-dom".into(), format!("file://{}", path.display())])
        .output();
    let Ok(output) = output else {
        skipped(test, "no chromium on PATH (apt-get install chromium)");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The report of the frozen record of a tuning.
fn report() -> String {
    let run = frozen::completed_run(&["report"]);
    fs::read_to_string(run.tuning().join("report.html")).unwrap()
}

#[test]
#[ignore = "needs Chromium: make test-long"]
fn points_are_explored_by_mouse_and_keys() {
    let page = report() + PERSON;
    let Some(page) = in_browser("points_are_explored_by_mouse_and_keys", &page) else { return };
    let (_, seen) = page.split_once("<ol id=\"seen\">").unwrap();
    let seen: Vec<&str> =
        seen.split("<li>").skip(1).map(|item| item.split("</li>").next().unwrap()).collect();
    assert_eq!(
        seen,
        [
            "hidden false",
            "collectives bcast,reduce",
            "decided by what is loaded: preload library,what is loaded: rules file,\
             chosen, before it was confirmed,default,hockney,loggp,measured,plogp,refined",
            "shown what is loaded: preload library",
            "heading reduce of 64 B on 2 ran",
            "cells 6",
            "after keys 2 2",
            "details method,time,predicted,measured best,penalty",
            "why of the loaded true",
            "blank not measured",
            "curves true",
            "curve chosen what is loaded: preload library",
            "marks inside true",
            "copied true",
            "ascending true",
            "descending true",
            "folded 0",
        ]
    );
}

/// A page of one collective on one number of ranks, at 23 sizes.
fn page_of_many_sizes() -> String {
    let sizes = (0..23).map(|power| records::quantity::format_bytes(1 << power));
    let point = |size: String| {
        format!(
            r#"{{"collective":"bcast","layout":"8x1","processes":"8 ranks","size":"{size}","answers":[{{"decided_by":"default","method":"default","seconds":1e-3,"time":"1 ms","details":[]}}]}}"#
        )
    };
    let points: Vec<String> = sizes.map(point).collect();
    let script = include_str!("../src/commands/report/explore.js");
    format!(
        r#"<!DOCTYPE html><style>.curve svg{{width:100%}}.curve text{{font-size:12px}}</style>
<section id="explore" hidden><select name="collective"></select><select name="decided_by"></select>
<div class="grid"></div><div class="details"></div><div class="curve"></div></section>
<script type="application/json" id="points">[{}]</script><script>{script}</script>"#,
        points.join(",")
    )
}

#[test]
#[ignore = "needs Chromium: make test-long"]
fn sizes_below_the_curves_do_not_overlap() {
    let look = r#"<ol id="seen"></ol><script>
const labels = [...document.querySelectorAll(".curve text[text-anchor=middle]")].map((it) => it.getBoundingClientRect());
const seen = `${labels.length} ${labels.every((it, n) => n === 0 || it.left >= labels[n - 1].right)}`;
document.getElementById("seen").append(Object.assign(document.createElement("li"), { textContent: seen }));
</script>"#;
    let test = "sizes_below_the_curves_do_not_overlap";
    let Some(page) = in_browser(test, &(page_of_many_sizes() + look)) else { return };
    let (_, seen) = page.split_once("<ol id=\"seen\"><li>").unwrap();
    let (labels, apart) = seen.split_once("</li>").unwrap().0.split_once(' ').unwrap();
    assert!((5..23).contains(&labels.parse::<u32>().unwrap()), "{labels} of 23 are written");
    assert_eq!(apart, "true");
}
