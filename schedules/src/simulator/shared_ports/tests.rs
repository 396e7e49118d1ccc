use super::*;

/// When each of some messages has passed; they come at these times.
fn passes(messages: &[(f64, SharedPortMessage)]) -> Vec<f64> {
    passes_and_looks(messages, 0).0
}

/// The same, and how often one was looked at.
fn passes_and_looks(messages: &[(f64, SharedPortMessage)], frame: u64) -> (Vec<f64>, usize) {
    let mut ports = SharedPorts::default();
    ports.begin(2000, if frame > 0 { 0 } else { 2 }, frame);
    let mut looked = 0;
    let mut passed = vec![0.0; messages.len()];
    let mut open: Vec<(f64, u32)> = Vec::new();
    let mut coming = messages.iter().peekable();
    loop {
        open.extend(std::iter::from_fn(|| ports.next_look()));
        let key = |(at, number): &(f64, u32)| (*at, ports.order(*number));
        open.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap());
        let next = open.last().map_or(f64::INFINITY, |(at, _)| *at);
        if let Some((at, entering)) = coming.next_if(|(at, _)| *at <= next) {
            ports.enter(*at, *entering);
        } else if let Some((now, number)) = open.pop() {
            looked += 1;
            match ports.look(now, number) {
                PassageCheck::Passed { message, .. } => passed[message as usize] = now,
                PassageCheck::Later { at } => open.push((at, number)),
                PassageCheck::Nothing => {}
            }
        } else {
            return (passed, looked);
        }
    }
}

fn entering(message: u32, pair: (u32, u32), bytes: u64, gap: f64) -> SharedPortMessage {
    let (gaps, nodes) = ([gap; 2], [None; 2]);
    SharedPortMessage { message, pair, ends: pair, bytes, gaps, nodes, is_inside: false }
}

#[track_caller]
fn assert_close(times: &[f64], wanted: &[f64]) {
    let close = |(time, wanted): (&f64, &f64)| (time - wanted).abs() < 1e-9;
    assert!(times.len() == wanted.len() && times.iter().zip(wanted).all(close), "{times:?}");
}

#[test]
fn messages_to_several_ranks_leave_together_and_those_to_one_follow_each_other() {
    let apart = [entering(0, (0, 1), 999, 10.0), entering(1, (0, 2), 999, 10.0)];
    assert_close(&passes(&apart.map(|message| (0.0, message))), &[20.0, 20.0]);
    let alike = [entering(0, (0, 1), 999, 10.0), entering(1, (0, 1), 999, 10.0)];
    assert_close(&passes(&alike.map(|message| (0.0, message))), &[10.0, 20.0]);
    // Half of the first has left when the second comes.
    assert_close(&passes(&[(0.0, apart[0]), (5.0, apart[1])]), &[15.0, 20.0]);
    // A short one is soon through; the long one goes on.
    let short = entering(1, (0, 2), 99, 1.0);
    assert_close(&passes(&[(0.0, apart[0]), (2.0, short)]), &[11.0, 4.0]);
}

#[test]
fn the_port_of_a_node_is_shared_by_its_ranks() {
    let by_node = |message, pair| SharedPortMessage {
        nodes: [Some((0, 6.0)), Some((1, 6.0))],
        ..entering(message, pair, 999, 10.0)
    };
    // Two ranks take 12 of the node's port, a third one 18; alone each would take 10.
    let two = [by_node(0, (0, 4)), by_node(1, (1, 5))];
    assert_close(&passes(&two.map(|message| (0.0, message))), &[12.0, 12.0]);
    let three = [two[0], two[1], by_node(2, (2, 6))];
    assert_close(&passes(&three.map(|message| (0.0, message))), &[18.0; 3]);
}

#[test]
fn messages_inside_a_node_and_between_nodes_do_not_hold_up_each_other() {
    let between = SharedPortMessage {
        nodes: [Some((0, 10.0)), Some((1, 10.0))],
        ..entering(0, (0, 4), 999, 10.0)
    };
    let inside = SharedPortMessage { is_inside: true, ..entering(1, (0, 1), 999, 1.0) };
    assert_close(&passes(&[(0.0, between), (0.0, inside)]), &[10.0, 1.0]);
    let other = SharedPortMessage { is_inside: true, ..entering(2, (0, 2), 999, 1.0) };
    assert_close(&passes(&[(0.0, between), (0.0, inside), (0.0, other)]), &[10.0, 2.0, 2.0]);
}

/// With very many at once a port is a little slower, and never faster than it can be.
#[test]
fn very_many_messages_take_as_long_as_their_port_does() {
    let many = (0..1000).map(|index| (0.0, entering(index, (0, 1 + index % 7), 999, 10.0)));
    let apart = (0..1000).map(|index| {
        let one = entering(index, (index, index + 1000), 999, 1.0);
        (0.0, SharedPortMessage { nodes: [Some((0, 10.0)), None], ..one })
    });
    let last = |times: Vec<f64>| times.into_iter().fold(0.0, f64::max);
    let of_seven = last(passes(&many.collect::<Vec<_>>()));
    assert!((of_seven / 10_000.0 - 1.0).abs() < 1e-6, "{of_seven}");
    let of_all = last(passes(&apart.collect::<Vec<_>>()));
    assert!((1.0 - 1e-9..1.0 + 3.0 * CHANGE).contains(&(of_all / 10_000.0)), "{of_all}");
}

/// What one message was to be looked at for is not looked for again with all that follow it.
#[test]
fn messages_in_a_row_are_looked_at_a_few_times_each() {
    let looks = |count: u32| {
        let rows = (0..count).map(|index| {
            // Four ranks hand them on to four others; every other message is a short one.
            let bytes = if index % 8 < 4 { 999 } else { 99 };
            (f64::from(index / 4), entering(index, (index % 4, 4 + index % 3), bytes, 10.0))
        });
        let (passed, looked) = passes_and_looks(&rows.collect::<Vec<_>>(), 0);
        assert!(passed.iter().all(|at| *at > 0.0));
        looked as f64 / f64::from(count)
    };
    let [few, many] = [looks(100), looks(3000)];
    assert!(many < 1.5 * few && many < 10.0, "{few} {many}");
}

#[test]
fn a_receiver_hears_all_its_senders_at_once() {
    let apart = [entering(0, (1, 0), 999, 10.0), entering(1, (2, 0), 999, 10.0)];
    assert_close(&passes(&apart.map(|message| (0.0, message))), &[20.0, 20.0]);
}

/// As round robin by frames: of k messages at once all but the last frames leave together, and these in turn.
#[test]
fn the_last_frames_of_messages_leave_one_after_the_other() {
    let by_frames = |messages: &[(f64, SharedPortMessage)]| passes_and_looks(messages, 100).0;
    // A byte takes 1.
    let to = |message, bytes| entering(message, (0, 1 + message), bytes, bytes as f64);
    let three = [to(0, 500), to(1, 500), to(2, 500)].map(|message| (0.0, message));
    assert_close(&by_frames(&three), &[1300.0, 1400.0, 1500.0]);
    let short = [to(0, 100), to(1, 80), to(2, 100)].map(|message| (0.0, message));
    assert_close(&by_frames(&short), &[100.0, 180.0, 280.0]);
    assert_close(&by_frames(&[(0.0, to(0, 500))]), &[500.0]);
    // What is one frame leaves before what is left of a long one, and holds it up for that time.
    let before = by_frames(&[(0.0, to(0, 500)), (150.0, to(1, 100))]);
    assert_close(&before, &[600.0, 250.0]);
    // Of one pair the second follows the first.
    let row = [(0.0, to(0, 500)), (0.0, entering(1, (0, 1), 500, 500.0))];
    assert_close(&by_frames(&row), &[500.0, 1000.0]);
    // Two come to one receiver: its port takes their last frames in turn.
    let into = [(1, 0), (2, 1)].map(|(from, message)| entering(message, (from, 0), 500, 500.0));
    assert_close(&by_frames(&into.map(|message| (0.0, message))), &[900.0, 1000.0]);
}
