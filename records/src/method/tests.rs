use super::*;
use crate::TreePace;
use proptest::prelude::*;

#[test]
fn the_spellings_of_the_documentation_are_understood() {
    for text in [
        "default",
        "native:openmpi:pipeline,segment=8KiB",
        "native:openmpi:linear",
        "own:splitted-binary,segment=1KiB",
        "own:linear-ready",
        "own:two-level",
        "own:two-level,inter=pipeline,intra=binomial,segment=8KiB",
        "own:multi-lane,intra=ring",
        "own:segmented-ring,order=node,segment=1KiB",
        "mockup:bcast_as_scatter_allgather",
        "plugin:/opt/lib/libmine.so:MPIB_Bcast_x",
        "plugin:libmine.so:MPIB_Bcast_x,suboptions=sgv=1,verbose",
        "other:BINE-BINOMIAL_TREE-UTOFU-0-1",
    ] {
        assert_eq!(text.parse::<Method>().unwrap().to_string(), text);
    }
}

#[test]
fn a_wrong_method_says_what_would_be_right() {
    for (text, part) in [
        ("native:openmpi:pipelin", "did you mean 'pipeline'?"),
        ("native:pipeline", "native:openmpi:ALGORITHM"),
        ("native:MPICH:pipeline", "'MPICH' is not an MPI library"),
        ("native::pipeline", "'' is not an MPI library"),
        ("native:alibraryofalongname:pipeline", "is not an MPI library"),
        ("own:pipeline,segments=8KiB", "known: segment=SIZE"),
        ("own:linear-redy", "did you mean 'linear-ready'?"),
        ("own:linear,form=ready", "as linear-ready"),
        ("own:node-order", "unknown algorithm 'node-order'"),
        ("own:pipeline(segment=8192)", "after commas, as in pipeline,segment=8KiB"),
        ("own:two-level(inter=ring,segment=8192)", "after commas, as in pipeline,segment=8KiB"),
        ("native:openmpi:pipeline(segment=8192)", "after commas, as in pipeline,segment=8KiB"),
        ("own:ring,order=nodes", "known: order=node"),
        ("own:two-level,order=node", "known: order=node"),
        ("own:ring,inter=linear", "ring has no levels"),
        ("own:two-level,inter=lineer", "did you mean 'linear'?"),
        ("own:two-level,inter=multi-lane", "no algorithm of one level"),
        ("own:two-level,inner=linear", "known: segment=SIZE"),
        ("own:k-nomial,fan-out=0", "a whole number from 1 on"),
        ("own:k-nomial,trip=3", "k-nomial has no trip"),
        ("own:fitted,trip=1e3", "a whole number from 1 on"),
        ("own:ring,fan-out=2,order=node", "no fan-out of its own"),
        ("mockup:foo", "A_as_B_C"),
        ("mockup:scan_as_exscan:openmpi:binary,segment=1KiB", "A_as_B_C"),
        ("plugin:libmine.so", "plugin:LIBRARY:SYMBOL"),
        ("other:", "other:bine_lat_over"),
        ("other:two words", "without spaces"),
        ("nativ:openmpi:pipeline", "did you mean 'native'?"),
        ("default:x", "unknown origin"),
    ] {
        let error = text.parse::<Method>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn what_is_standard_has_one_name() {
    for (given, written) in [
        ("own:k-nomial,fan-out=4", "own:k-nomial"),
        ("own:k-nomial,segment=8KiB,fan-out=8", "own:k-nomial,fan-out=8,segment=8KiB"),
        ("own:fitted,trip=1,gap=1", "own:fitted"),
        ("own:fitted,trip=57,gap=57", "own:fitted"),
        ("own:fitted,gap=24,trip=57", "own:fitted,trip=57,gap=24"),
        ("own:two-level,intra=ring,fan-out=4,inter=bruck", "own:two-level,inter=bruck,intra=ring"),
        ("own:fitted,fan-out=4", "own:fitted,fan-out=4"),
        ("own:circulant,fan-out=4", "own:circulant,fan-out=4"),
        ("own:circulant,fan-out=1", "own:circulant"),
    ] {
        let method: Method = given.parse().unwrap();
        assert_eq!(method.to_string(), written);
        assert_eq!(method.to_string().parse::<Method>().unwrap(), method);
    }
    let fitted: Method = "own:fitted,trip=57,gap=24,fan-out=3,segment=1KiB".parse().unwrap();
    assert_eq!(fitted.short(), "fitted to 57:24 of 3 1 KiB");
}

#[test]
fn ours_and_the_librarys_of_one_name_are_told_apart_where_both_stand() {
    let of = |names: &[&str]| -> Vec<String> {
        let methods: Vec<Method> = names.iter().map(|name| name.parse().unwrap()).collect();
        methods.iter().map(|method| method.short_beside(methods.iter())).collect()
    };
    let ours = ["default", "own:linear", "own:ring,segment=8KiB", "mockup:gather_as_allgather"];
    assert_eq!(of(&ours), ["default", "linear", "ring 8 KiB", "gather_as_allgather"]);
    let both = [&ours[..], &["native:openmpi:linear"]].concat();
    let mut told = of(&both);
    assert_eq!(told[1..3], ["own:linear", "own:ring,segment=8KiB"]);
    assert_eq!(told[4], "linear");
    told.sort();
    told.dedup();
    assert_eq!(told.len(), both.len());
}

/// Any method of ours that can be written.
fn own_methods() -> impl Strategy<Value = OwnMethod> {
    let is_named = |algorithm: &Algorithm| *algorithm != Algorithm::NodeOrder;
    let named: Vec<Algorithm> = Algorithm::ALL.iter().copied().filter(is_named).collect();
    let is_level = |algorithm: &Algorithm| !algorithm.is_node_aware();
    let levels: Vec<Algorithm> = named.iter().copied().filter(is_level).collect();
    let level = move || prop::option::of(prop::sample::select(levels.clone()));
    let pace = (1_u32..9, 1_u32..9).prop_map(|(trip, gap)| TreePace { trip, gap });
    let parameters = (any::<bool>(), level(), level(), prop::option::of(1_u32..9), pace);
    (prop::sample::select(named), parameters, prop_oneof![Just(0), 0_u64..1 << 40]).prop_map(
        |(algorithm, (by_node, inter, intra, fan_out, pace), segment_bytes)| {
            let plain = OwnMethod::plain(algorithm).with_segment(segment_bytes);
            match (algorithm.is_node_aware(), by_node) {
                (true, _) => OwnMethod { inter, intra, ..plain },
                (false, true) => OwnMethod { by_node, ..plain },
                (false, false) => {
                    let pace = if algorithm == Algorithm::Fitted { pace } else { TreePace::EVEN };
                    let fan_out = fan_out.unwrap_or(plain.fan_out);
                    OwnMethod { fan_out, ..plain }.with_pace(pace)
                }
            }
        },
    )
}

proptest! {
    #[test]
    fn every_method_of_ours_reads_back_and_equal_ones_have_one_text(
        one in own_methods(),
        other in own_methods(),
    ) {
        for method in [one, other] {
            prop_assert_eq!(method.to_string().parse::<Method>(), Ok(Method::Own(method)));
        }
        prop_assert_eq!(one == other, one.to_string() == other.to_string());
    }

    #[test]
    fn every_native_method_reads_back(index in 0..Algorithm::ALL.len(), segment_bytes in 0_u64..1 << 40) {
        let algorithm = Algorithm::ALL[index];
        prop_assume!(algorithm != Algorithm::NodeOrder);
        for library in ["openmpi", "mpich", "a", "alibrarysolong1"] {
            let library = Library::new(library).unwrap();
            let method = Method::Native(Native { library, algorithm, segment_bytes });
            prop_assert_eq!(method.to_string().parse::<Method>().unwrap(), method);
        }
    }
}
