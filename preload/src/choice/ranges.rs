//! Which profile holds for a communicator.

use records::{
    Collective, Layout, Method, Ranges,
    profile::{OtherLayouts, OtherProcs, Profile},
};

/// The ranges that hold for a collective, by the profile of this size or by what its neighbours
/// say of other sizes.
pub fn ranges_for(
    profiles: &[Profile],
    collective: Collective,
    procs: u32,
    layout: Option<Layout>,
) -> Ranges<&Method> {
    let nodes = layout.map(Layout::nodes);
    let of_layout = layout.and_then(|layout| nearest(profiles, collective, layout));
    // One of the same number of nodes says more than one that doesn't tell.
    let fits = |profile: &&Profile| {
        profile.collective == collective
            && profile.layout.is_none()
            && (profile.nodes.is_none() || profile.nodes == nodes)
    };
    let fitting = || profiles.iter().filter(fits);
    let exact = fitting().filter(|profile| profile.procs == procs).max_by_key(|p| p.nodes);
    let below = fitting().filter(|profile| profile.procs < procs);
    let below = below.max_by_key(|profile| (profile.procs, profile.nodes));
    let above = fitting().filter(|profile| profile.procs > procs);
    let above = above.min_by_key(|profile| (profile.procs, std::cmp::Reverse(profile.nodes)));
    match (of_layout.or(exact), below, above) {
        (Some(profile), ..) => ranges(profile),
        (None, Some(below), _) if below.other_procs == OtherProcs::NearestBelow => ranges(below),
        (None, Some(below), Some(above)) if below.other_procs == OtherProcs::Interpolated => {
            ranges(below).common(&ranges(above))
        }
        _ => Ranges::default(),
    }
}

/// The profile of a layout or, between those measured, of the nearest one that holds for others.
fn nearest(profiles: &[Profile], collective: Collective, layout: Layout) -> Option<&Profile> {
    let measured: Vec<(Layout, &Profile)> = profiles
        .iter()
        .filter(|profile| profile.collective == collective)
        .filter_map(|profile| Some((profile.layout?, profile)))
        .collect();
    if let Some((_, exact)) = measured.iter().find(|(of, _)| *of == layout) {
        return Some(exact);
    }
    let lies_between = |of: fn(Layout) -> u32| {
        let all = || measured.iter().map(|(layout, _)| of(*layout));
        all().min() <= Some(of(layout)) && Some(of(layout)) <= all().max()
    };
    if !lies_between(Layout::procs) || !lies_between(Layout::max_per_node) {
        return None;
    }
    let octaves = |a: u32, b: u32| (f64::from(a.max(1)) / f64::from(b.max(1))).log2();
    // Of two as near, the one that is placed alike.
    let distance = |of: Layout| {
        let procs = octaves(of.procs(), layout.procs());
        let per_node = octaves(of.max_per_node(), layout.max_per_node());
        (procs.hypot(per_node), of.placement() != layout.placement(), of)
    };
    let nearest = measured.into_iter().min_by(|(a, _), (b, _)| {
        let ((a, a_else, a_of), (b, b_else, b_of)) = (distance(*a), distance(*b));
        a.total_cmp(&b).then((a_else, a_of).cmp(&(b_else, b_of)))
    });
    let (_, profile) = nearest?;
    (profile.other_layouts == OtherLayouts::Nearest).then_some(profile)
}

fn ranges(profile: &Profile) -> Ranges<&Method> {
    profile.ranges.filter_map(|of| Some(&of.method))
}
