use proptest::prelude::*;

use super::*;

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// The node of each rank, by the words of the two placements.
fn dealt(counts: &[u32], placement: RankPlacement) -> Vec<u32> {
    let mut left = counts.to_vec();
    let mut nodes = Vec::new();
    while left.iter().any(|count| *count > 0) {
        for (node, count) in left.iter_mut().enumerate() {
            let taken = match placement {
                RankPlacement::Block => *count,
                RankPlacement::Cyclic => 1.min(*count),
            };
            *count -= taken;
            nodes.extend(vec![node as u32; taken as usize]);
        }
    }
    nodes
}

proptest! {
    /// Whatever host each rank is on: text and files read back, and all that is told of it agrees
    /// with the list of hosts.
    #[test]
    fn any_list_of_hosts_has_one_layout(hosts in prop::collection::vec(0_u32..5, 1..24)) {
        let layout = Layout::from_nodes(&hosts).unwrap();
        prop_assert_eq!(layout.to_string().parse::<Layout>().unwrap(), layout);
        prop_assert_eq!(format!("{layout:#}").parse::<Layout>().unwrap(), layout);
        let json = serde_json::to_string(&layout).unwrap();
        prop_assert_eq!(serde_json::from_str::<Layout>(&json).unwrap(), layout);
        prop_assert_eq!(json.starts_with('"'), !layout.is_flat());

        prop_assert_eq!(layout.procs() as usize, hosts.len());
        let nodes = layout.nodes_of_ranks();
        prop_assert_eq!(Layout::from_nodes(&nodes).unwrap(), layout);
        for (rank, node) in nodes.iter().enumerate() {
            prop_assert_eq!(layout.node_of(rank as u32), Some(*node));
            for (other, host) in hosts.iter().enumerate() {
                prop_assert_eq!(*host == hosts[rank], nodes[other] == *node);
            }
        }
        prop_assert_eq!(layout.node_of(layout.procs()), None);
        for procs in 1..=hosts.len() {
            let first = layout.of_first(procs as u32).unwrap();
            prop_assert_eq!(first, Layout::from_nodes(&hosts[..procs]).unwrap());
        }
        prop_assert_eq!(layout.of_first(layout.procs() + 1), None);
        let counts = layout.counts();
        prop_assert_eq!(counts.len() as u32, layout.nodes());
        prop_assert_eq!(counts.iter().max().copied(), Some(layout.max_per_node()));
    }

    /// Both placements deal ranks as their words say, and are found again from the hosts.
    #[test]
    fn placements_deal_ranks_in_their_order(
        counts in prop::collection::vec(1_u32..6, 1..7), cyclic in any::<bool>(),
    ) {
        let placement = if cyclic { RankPlacement::Cyclic } else { RankPlacement::Block };
        let layout = Layout::from_counts(&counts, placement).unwrap();
        let nodes = dealt(&counts, placement);
        prop_assert_eq!(layout.nodes_of_ranks(), nodes.clone());
        prop_assert_eq!(layout.counts(), counts);
        prop_assert_eq!(Layout::from_nodes(&nodes).unwrap(), layout);
        prop_assert!(layout.placement().is_some());
    }

    /// Damaged text is read or refused, never a panic.
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9x+:*.a-l ]{0,12}") {
        if let Ok(layout) = text.parse::<Layout>() {
            prop_assert_eq!(layout.to_string().parse::<Layout>().unwrap(), layout);
        }
    }
}

#[test]
fn one_distribution_has_one_text() {
    for (given, text, full) in [
        ("8", "8", "8x1"),
        ("8x1", "8", "8x1"),
        ("8x1:cyclic", "8", "8x1"),
        ("1x4:cyclic", "1x4", "1x4"),
        (" 8x4 ", "8x4", "8x4"),
        ("8x4:block", "8x4", "8x4"),
        ("8x4:cyclic", "8x4:cyclic", "8x4:cyclic"),
        ("4+4+3", "4+4+3", "4+4+3"),
        ("4+4+4", "3x4", "3x4"),
        ("1+1+3:cyclic", "1+1+3", "1+1+3"),
        ("4+4+3:cyclic", "4+4+3:cyclic", "4+4+3:cyclic"),
        ("list:0*4.1*4", "2x4", "2x4"),
        ("list:7.3.7.3", "2x2:cyclic", "2x2:cyclic"),
        ("list:0*2.1.0", "list:0*2.1.0", "list:0*2.1.0"),
    ] {
        let layout = layout(given);
        assert_eq!((layout.to_string().as_str(), format!("{layout:#}").as_str()), (text, full));
    }
}

#[test]
fn what_is_none_is_refused_in_words() {
    for (text, part) in [
        ("", "expected nodes x ranks per node as 8x4"),
        ("8x", "layout '8x': expected nodes"),
        ("8x4:random", "unknown placement of ranks 'random'"),
        ("0x4", "holds 0 ranks"),
        ("4+0+3", "node 1 has no rank"),
        ("65536x65536", "holds 4294967296 ranks; expected 1 to 16777216 ranks"),
        (
            "list:0*70000",
            "lists more than 65536 ranks, one by one; write more as nodes x ranks of each",
        ),
        ("list:0*0", "holds 0 ranks"),
    ] {
        let error = text.parse::<Layout>().unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    let error = serde_json::from_str::<Layout>("true").unwrap_err().to_string();
    assert!(error.contains("a number of ranks or a layout such as 8x4"), "{error}");
}

/// By ranks, then by the ranks of the fullest node.
#[test]
fn layouts_are_ordered_as_tables_list_them() {
    let texts = ["8", "4x2", "4x2:cyclic", "2x4", "5+3", "1x8", "32", "8x4", "8x4:cyclic"];
    let mut sorted: Vec<Layout> = texts.iter().rev().map(|text| layout(text)).collect();
    sorted.sort();
    let sorted: Vec<String> = sorted.iter().map(Layout::to_string).collect();
    assert_eq!(sorted, texts);
}

/// In a line of a record as in JSON.
#[test]
fn a_record_holds_layouts_where_numbers_stood() {
    use crate::{Collective, Method, Point, observation::CollectiveCall, plan::Cell, record};
    for (text, written) in [("8", ",8,"), ("8x4:cyclic", ",8x4:cyclic,"), ("4+4+3", ",4+4+3,")] {
        let (collective, method) = (Collective::Bcast, Method::Default);
        let row = CollectiveCall::timed(
            &Cell { point: Point::new(collective, layout(text), 1), method },
            0.5,
        );
        let line = String::from_utf8(record::line(&row).unwrap()).unwrap();
        assert!(line.contains(written), "{line}");
        let columns = <CollectiveCall as record::Row>::COLUMNS.join(",");
        let file = format!("#@schema=colibri/measurements/1\n{columns}\n{line}");
        let read = record::parse::<CollectiveCall>(&file, std::path::Path::new("x")).unwrap();
        assert_eq!(read.rows, [row]);
        let wrong = file.replace(written, ",8y4,");
        let error = record::parse::<CollectiveCall>(&wrong, std::path::Path::new("x")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("line 3") && error.contains("layout '8y4': expected"), "{error}");
    }
}

#[test]
fn numbers_stand_at_the_right_of_a_column() {
    assert_eq!(
        format!("{:5}|{:5}|{:>5}", layout("8"), layout("8x4"), layout("8x4")),
        "    8|8x4  |  8x4"
    );
}

#[test]
fn words_say_the_processes_and_their_nodes() {
    for (text, words) in [
        ("8", "8 ranks"),
        ("2x4", "8 ranks (2 nodes x 4)"),
        ("1x4", "4 ranks (1 node x 4)"),
        ("2x4:cyclic", "8 ranks (2 nodes x 4, cyclic)"),
        ("4+4+3", "11 ranks (nodes of 4+4+3)"),
        ("list:0.1.1.0", "4 ranks (in no regular order on 2 nodes)"),
    ] {
        assert_eq!(layout(text).in_words(), words, "{text}");
    }
}
