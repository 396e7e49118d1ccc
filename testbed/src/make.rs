//! Making a testbed.

use std::path::Path;

use crate::{
    LinkOptions, Phase, Rate, Spec, Testbed, TestbedError, remove, scripts,
    spec::{self, HEAD, PREFIX_BITS, namespace},
    state::{self, State},
    status, switch_process,
    system::{self, NAMESPACES, SystemStep, Tools},
    tcp::Tcp,
    wiring,
};

const BRIDGE: &str = "switch0";

/// Makes a testbed.
///
/// Where no TAP devices can be had, one without latency is made, which its spec then says
/// ([`Spec::links`]); one with racks, jitter or loss is refused.
///
/// # Errors
/// Not root, a program or a feature of the kernel missing, a spec out of range, a testbed of that
/// name there already. Whatever was made before the error is removed again.
pub fn up(spec: &Spec) -> Result<Testbed, TestbedError> {
    spec.check()?;
    system::require_root()?;
    let spec = &possible(spec, Path::new(switch_process::TUN))?;
    up_with(spec, &Tools::find()?)
}

/// What can be made of it with this file for TAP devices.
fn possible(spec: &Spec, tun: &Path) -> Result<Spec, TestbedError> {
    match switch_process::hindrance(tun).filter(|_| spec.links.is_some()) {
        Some(hindrance) => spec.without_links(&hindrance),
        None => Ok(spec.clone()),
    }
}

fn up_with(spec: &Spec, tools: &Tools) -> Result<Testbed, TestbedError> {
    refuse_leftovers(&spec.name)?;
    state::claim(&spec.name)?;
    match make(spec, tools) {
        Ok(()) => Ok(Testbed { spec: spec.clone() }),
        Err(first) => Err(match remove::down(&spec.name) {
            Ok(_) => first,
            Err(second) => TestbedError::Twice { first: first.into(), second: second.into() },
        }),
    }
}

fn refuse_leftovers(name: &str) -> Result<(), TestbedError> {
    let namespaces = status::namespaces_of(name)?;
    match namespaces.first() {
        None => Ok(()),
        Some(first) => {
            let what = format!("namespace {first}");
            Err(TestbedError::Exists { name: name.into(), what })
        }
    }
}

fn make(spec: &Spec, tools: &Tools) -> Result<(), TestbedError> {
    state::write(&State::new(spec, Phase::Making))?;
    state::make_temporary_directory(&spec.name)?;
    scripts::write(spec, tools)?;
    let maker = ClusterBuilder { spec, tools };
    match &spec.links {
        Some(links) => maker.switched(links)?,
        None => maker.bridged()?,
    }
    state::write(&State::new(spec, Phase::Standing))
}

struct ClusterBuilder<'a> {
    spec: &'a Spec,
    tools: &'a Tools,
}

impl ClusterBuilder<'_> {
    /// A bridge and token buckets.
    fn bridged(&self) -> Result<(), TestbedError> {
        self.head()?;
        (0..self.spec.nodes).try_for_each(|node| self.node(node))
    }

    /// A switch of our own, with a device in each place.
    fn switched(&self, links: &LinkOptions) -> Result<(), TestbedError> {
        for place in self.spec.places() {
            self.namespace(&place)?;
        }
        let wiring = wiring::wiring(self.spec, links);
        let switch = switch_process::start(&self.spec.name, &wiring)?;
        let step = SystemStep { doing: "connect the nodes to the switch", needs: "" };
        let moves = wiring.ports.iter().map(|port| {
            let place = &port.place;
            format!("link set {place} netns {} name eth0\n", namespace(&self.spec.name, place))
        });
        let within = format!("--net={}", switch.namespace().display());
        let ip = self.tools.ip.display().to_string();
        let batch = ["--", &ip, "-batch", "-"];
        let arguments = [&*within].into_iter().chain(batch);
        step.run_with(&self.tools.nsenter, arguments, &moves.collect::<String>())?;
        let tcp = Tcp::for_wiring(&wiring, links.is_lossy());
        for (port, wires) in wiring.ports.iter().enumerate() {
            let name = &*namespace(&self.spec.name, &wires.place);
            let doing = &*format!("set up the network of {}", wires.place);
            let step = SystemStep { doing, needs: "" };
            self.in_shell(&step, &wires.place, &tcp.settings())?;
            let setup = tcp.device(port, wiring.ports.len());
            step.run_with(&self.tools.ip, ["-n", name, "-batch", "-"], &setup)?;
        }
        switch.go(&self.spec.name)
    }

    fn head(&self) -> Result<(), TestbedError> {
        self.namespace(HEAD)?;
        let step = SystemStep { doing: "make the switch", needs: "a kernel with CONFIG_BRIDGE" };
        self.ip(&step, HEAD, &["link", "add", BRIDGE, "type", "bridge"])?;
        let address = format!("{}/{PREFIX_BITS}", spec::head_address());
        self.ip(&step, HEAD, &["address", "add", &address, "dev", BRIDGE])?;
        self.ip(&step, HEAD, &["link", "set", BRIDGE, "up"])
    }

    fn node(&self, node: u32) -> Result<(), TestbedError> {
        let place = &*format!("n{node}");
        let port = &*format!("port{node}");
        self.namespace(place)?;

        let doing = &*format!("connect node {node} to the switch");
        let step = SystemStep { doing, needs: "a kernel with CONFIG_VETH" };
        let peer = &*namespace(&self.spec.name, place);
        let pair = ["link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", peer];
        self.ip(&step, HEAD, &pair)?;
        let address = &*format!("{}/{PREFIX_BITS}", spec::port_address(node));
        self.ip(&step, place, &["address", "add", address, "dev", "eth0"])?;
        self.shape(place, "eth0", self.spec.outbound(node))?;
        self.shape(HEAD, port, self.spec.inbound(node))?;
        self.ip(&step, place, &["link", "set", "eth0", "up"])?;
        self.ip(&step, HEAD, &["link", "set", port, "master", BRIDGE, "up"])
    }

    /// A namespace with its loopback up. IPv6 is switched off in it: its neighbour and router
    /// discovery would disturb the first measurements.
    fn namespace(&self, place: &str) -> Result<(), TestbedError> {
        let name = &*namespace(&self.spec.name, place);
        let doing = &*format!("make the network namespace {name}");
        let step = SystemStep { doing, needs: "CAP_SYS_ADMIN and a kernel with CONFIG_NET_NS" };
        step.run(&self.tools.ip, ["netns", "add", name])?;
        self.ip(&step, place, &["link", "set", "lo", "up"])?;
        let no_ipv6 = "f=/proc/sys/net/ipv6/conf/all/disable_ipv6; test ! -e $f || echo 1 > $f";
        self.in_shell(&step, place, no_ipv6)
    }

    fn in_shell(
        &self,
        step: &SystemStep<'_>,
        place: &str,
        script: &str,
    ) -> Result<(), TestbedError> {
        let net = format!("--net={NAMESPACES}/{}", namespace(&self.spec.name, place));
        step.run(&self.tools.nsenter, [&net, "--", "/bin/sh", "-c", script])
    }

    /// The rate of what a device sends. The queue of 200 ms is long enough that nothing is dropped.
    fn shape(&self, place: &str, device: &str, rate: Rate) -> Result<(), TestbedError> {
        let doing = &*format!("limit {device} of {place} to {rate}");
        let step = SystemStep { doing, needs: "a kernel with CONFIG_NET_SCH_TBF" };
        let bits = &*format!("{}bit", rate.bits_per_second());
        let burst = &*rate.burst_bytes().to_string();
        let name = &*namespace(&self.spec.name, place);
        let filter = ["tbf", "rate", bits, "burst", burst, "latency", "200ms"];
        let command = ["-n", name, "qdisc", "add", "dev", device, "root"];
        step.run(&self.tools.tc, command.into_iter().chain(filter))?;
        let Some(bytes) = rate.largest_unit_bytes() else { return Ok(()) };
        self.ip(&step, place, &["link", "set", device, "gso_max_size", &bytes.to_string()])
    }

    fn ip(
        &self,
        step: &SystemStep<'_>,
        place: &str,
        arguments: &[&str],
    ) -> Result<(), TestbedError> {
        let name = &*namespace(&self.spec.name, place);
        step.run(&self.tools.ip, ["-n", name].iter().chain(arguments))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::{down, status};

    fn spec(suffix: &str) -> Spec {
        let name = format!("u{}-{suffix}", std::process::id());
        Spec::new(&name, 3, "100mbit".parse().unwrap()).unwrap()
    }

    fn is_there(spec: &Spec) -> bool {
        status().unwrap().iter().any(|testbed| testbed.name == spec.name)
            || state::directory(&spec.name).exists()
    }

    /// The tools; none where they cannot be used.
    fn usable_tools() -> Option<Tools> {
        let tools = Tools::find().ok()?;
        let step = SystemStep { doing: "try", needs: "" };
        let usable =
            system::require_root().is_ok() && step.run(&tools.unshare, ["--net", "true"]).is_ok();
        if !usable {
            crate::skipped::skipped("virtual clusters", "needs root");
        }
        usable.then_some(tools)
    }

    #[test]
    fn a_failure_half_way_leaves_nothing() {
        let Some(tools) = usable_tools() else { return };
        let folder = tempfile::tempdir().unwrap();
        let (fake, calls) = (folder.path().join("tc"), folder.path().join("calls"));
        let real = tools.tc.display();
        // Fails in the third node, when the others and half of it are there.
        let script = format!(
            "#!/bin/sh\necho >> {0}\n[ $(wc -l < {0}) -lt 6 ] && exec {real} \"$@\"\n\
             echo no tbf today >&2\nexit 2\n",
            calls.display()
        );
        fs::write(&fake, script).unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        let spec = spec("half");
        let error = up_with(&spec, &Tools { tc: fake, ..tools }).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot limit port2 of head to 100mbit: tc: no tbf today \
             (it needs a kernel with CONFIG_NET_SCH_TBF)"
        );
        assert!(!is_there(&spec));
        assert!(down(&spec.name).unwrap().is_nothing());
    }

    /// As if killed at each point in its making.
    #[test]
    fn what_an_interrupted_making_left_is_found() {
        let Some(tools) = usable_tools() else { return };
        let spec = spec("cut");
        let maker = ClusterBuilder { spec: &spec, tools: &tools };
        for made in 0..=3 {
            state::claim(&spec.name).unwrap();
            if made > 0 {
                state::write(&State::new(&spec, Phase::Making)).unwrap();
                let error = Testbed::open(&spec.name).unwrap_err().to_string();
                assert!(error.contains("not completed"), "{error}");
            }
            if made > 1 {
                maker.head().unwrap();
            }
            if made > 2 {
                maker.node(0).unwrap();
            }
            let error = up(&spec).unwrap_err().to_string();
            assert!(error.contains("down"), "{error}");
            assert!(is_there(&spec), "a second `up` leaves the first one's alone");
            let removed = down(&spec.name).unwrap();
            assert_eq!(removed.namespaces, [0, 0, 1, 2][made]);
            assert!(removed.directory && !is_there(&spec));
        }
    }

    #[test]
    fn without_tap_devices_there_is_no_latency_and_nothing_else_is_left_out() {
        let links = LinkOptions { latency: "1ms".parse().unwrap(), ..LinkOptions::default() };
        let asked = spec("tapless").with_links(links.clone()).unwrap();
        let none = Path::new("/nonexistent/tun");
        let reduced = possible(&asked, none).unwrap();
        assert_eq!(reduced, Spec { links: None, ..asked.clone() });
        assert_eq!(possible(&asked, Path::new("/dev/null")).unwrap(), asked);
        let lossy = LinkOptions { loss: "1%".parse().unwrap(), ..links };
        let error = possible(&asked.with_links(lossy).unwrap(), none).unwrap_err().to_string();
        assert!(
            error.contains("loss is not possible here") && error.contains("/nonexistent/tun"),
            "{error}"
        );
    }

    #[test]
    fn the_kernel_is_named_when_it_refuses() {
        let Some(tools) = usable_tools() else { return };
        let spec = spec("refuse");
        let refusing = Tools { ip: Path::new("/bin/false").into(), ..tools };
        let error = up_with(&spec, &refusing).unwrap_err().to_string();
        assert!(error.contains("CONFIG_NET_NS") && error.contains("false ended"), "{error}");
        assert!(!is_there(&spec));
    }
}
