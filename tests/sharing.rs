//! What a run tells of a cluster that strangers may read, and what lies in `clusters/`.

use std::{fs, path::Path};

use records::{document, shared_cluster::SharedCluster};

use crate::{
    frozen::{RunCopies, steps::TUNE},
    support::colibri,
};

#[test]
fn what_is_shared_names_no_host_and_no_path() {
    let copies = RunCopies::new();
    let run = |code: i32, arguments: &[&str]| {
        let mut command = colibri();
        command.args(arguments).current_dir(copies.path());
        command.env("COLIBRI_PROGRAMS", copies.path().join("programs"));
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        stderr
    };
    let nothing = run(2, &["platform", "guidelines", "--share", "ours"]);
    assert!(nothing.contains("holds no calibration.json"), "{nothing}");
    run(0, &TUNE[0].arguments.split_whitespace().collect::<Vec<_>>());
    run(0, &["platform", "tune", "--share", "ours"]);

    let file = copies.path().join("ours.json");
    let shared: SharedCluster = document::read(&file).unwrap();
    assert_eq!((shared.name.as_str(), shared.layout.to_string().as_str()), ("ours", "4"));
    assert_eq!(shared.mpi_library, "Open MPI 4.1.4");
    assert_eq!(shared.gains.iter().map(|gain| gain.confirmed).collect::<Vec<_>>(), [6, 4]);
    assert!(shared.penalties.iter().any(|penalty| penalty.decided_by == "default"));
    let text = fs::read_to_string(&file).unwrap();
    let calibration = fs::read_to_string(copies.tuning().join("calibration.json")).unwrap();
    let calibration: serde_json::Value = serde_json::from_str(&calibration).unwrap();
    let platform = &calibration["platform"];
    let hosts = platform["hosts"].as_array().unwrap().iter().map(|host| host.as_str().unwrap());
    for private in
        hosts.chain([platform["launcher"].as_str().unwrap(), "OMPI_", "=", "/home", "/tmp"])
    {
        let quoted = format!("\"{private}\"");
        assert!(
            !text.contains(&quoted) && (private.len() < 5 || !text.contains(private)),
            "{private}"
        );
    }

    let again = run(1, &["platform", "tune", "--share", "ours"]);
    assert!(again.contains("ours.json: already exists; name another file by --output"), "{again}");
    let wrong = run(2, &["platform", "tune", "--share", "a/b"]);
    assert!(wrong.contains("e.g. marconi-2026"), "{wrong}");
}

#[test]
fn every_cluster_that_is_there_can_be_read_and_stands_on_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/clusters.md")).unwrap();
    let files = fs::read_dir(root.join("clusters")).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for file in files {
        let shared: SharedCluster = document::read(&file).unwrap();
        assert_eq!(Some(shared.name.as_str()), file.file_stem().unwrap().to_str());
        let link = format!(
            "[{0}](../clusters/{0}.json) | {1} | {2} |",
            shared.name, shared.mpi_library, shared.layout
        );
        assert!(page.contains(&link), "{link}");
        count += 1;
    }
    assert!(count > 0 && page.matches("](../clusters/").count() == count, "{page}");
}
