//! The running switch: frames from the devices into the fabric, and out of it when they are due.

use std::{
    io::{self, Write},
    os::unix::net::UnixListener,
    path::Path,
};

use anyhow::{Context, Result};
use colibri_switch::{
    Delivery, Durations, Fabric, HEAD, Nanoseconds, PortIndex, Service, Wiring, port_of,
};
use records::document;
use rustix::{
    event::{
        Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
    },
    fd::{AsFd, OwnedFd},
    time::{ClockId, clock_gettime},
};

use crate::{
    alarm::sleep_before_delivery,
    awake::Processors,
    tap::{FRAME_ROOM, Tap},
};

/// Frames that are taken from one device before what has become due is delivered.
const FRAMES_AT_ONCE: usize = 16;

/// A port whose frames fill this much of the memory is not read until half of them are gone: its node
/// is held back, by its own device's queue. TCP's windows hold it back long before.
const MAX_HELD_BYTES: u64 = 64 << 20;

/// After the last frame, processors are kept awake for so long.
const CALM: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// What an event of the listening socket is marked by.
const LISTENER: u64 = u64::MAX;

pub struct Server {
    fabric: Fabric<Box<[u8]>>,
    ports: Vec<SwitchPort>,
    /// The head's, whose frames are not counted among those between nodes.
    head: Option<PortIndex>,
    epoll: OwnedFd,
    listener: UnixListener,
    tally: FrameTally,
    /// Of the last look at the clock; all that was due by then is delivered.
    time: Nanoseconds,
    /// When a frame was last delivered.
    delivered: Nanoseconds,
    room: Box<[u8; FRAME_ROOM]>,
    processors: Processors,
}

struct SwitchPort {
    tap: Tap,
    is_read: bool,
}

struct FrameTally {
    frames: u64,
    bytes: u64,
    refused: u64,
    stray: u64,
    lateness: Durations,
    held: Durations,
}

impl Server {
    /// With a device for each port, answering at `socket`.
    pub fn new(wiring: &Wiring, taps: Vec<Tap>, socket: &Path) -> Result<Server> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).context("cannot make an epoll")?;
        let listener = UnixListener::bind(socket)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .with_context(|| format!("cannot listen at {}", socket.display()))?;
        watch(&epoll, &listener, LISTENER)?;
        for (index, tap) in taps.iter().enumerate() {
            watch(&epoll, tap, index as u64)?;
        }
        let head = wiring.ports.iter().position(|port| port.place == HEAD);
        Ok(Server {
            fabric: Fabric::new(wiring),
            ports: taps.into_iter().map(|tap| SwitchPort { tap, is_read: true }).collect(),
            head: head.map(|index| index as PortIndex),
            epoll,
            listener,
            tally: FrameTally {
                frames: 0,
                bytes: 0,
                refused: 0,
                stray: 0,
                lateness: Durations::new()?,
                held: Durations::new()?,
            },
            time: 0,
            delivered: 0,
            room: Box::new([0; FRAME_ROOM]),
            processors: Processors::default(),
        })
    }

    /// Until a device is gone.
    pub fn run(mut self, realtime: bool) -> Result<()> {
        let mut events = Vec::with_capacity(self.ports.len() + 1);
        loop {
            self.wait(&mut events)?;
            self.deliver();
            for event in events.drain(..) {
                let Event { flags, data } = event;
                match data.u64() {
                    LISTENER => self.answer(realtime)?,
                    _ if flags.intersects(EventFlags::ERR | EventFlags::HUP) => return Ok(()),
                    port => match self.take(port as PortIndex) {
                        Ok(()) => self.deliver(),
                        // The device went with its namespace.
                        Err(_) => return Ok(()),
                    },
                }
            }
        }
    }

    /// Until a node sends, somebody asks, or a frame may be due.
    fn wait(&mut self, events: &mut Vec<Event>) -> Result<()> {
        let due = self.fabric.nothing_due_before().map(|due| {
            let left = sleep_before_delivery(now(), due, self.delivered);
            Timespec {
                tv_sec: (left / 1_000_000_000) as i64,
                tv_nsec: (left % 1_000_000_000) as i64,
            }
        });
        let patience = due.or_else(|| self.processors.are_awake().then_some(CALM));
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), patience.as_ref()) {
            Ok(0) if due.is_none() => {
                self.processors.let_sleep();
                Ok(())
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("cannot wait for frames"),
        }
    }

    /// All that is due.
    fn deliver(&mut self) {
        loop {
            self.time = now();
            let Some(delivery) = self.fabric.until(self.time) else { return };
            let Delivery { source, destination, came, due, content, .. } = delivery;
            let sent = now();
            self.delivered = sent;
            let taken = self.ports[usize::from(destination)].tap.write(&content);
            let tally = &mut self.tally;
            tally.frames += 1;
            tally.bytes += content.len() as u64;
            tally.refused += u64::from(!taken);
            if ![Some(source), Some(destination)].contains(&self.head) {
                tally.lateness.add(sent.saturating_sub(due));
                tally.held.add(sent.saturating_sub(came));
            }
            self.hold_back(source);
        }
    }

    /// Some of the frames that a node has sent. They count as come when the last look at the clock was:
    /// that is when they were there.
    fn take(&mut self, source: PortIndex) -> io::Result<()> {
        for _ in 0..FRAMES_AT_ONCE {
            let tap = &self.ports[usize::from(source)].tap;
            let Some(frame) = tap.read(&mut self.room)? else { break };
            match port_of(frame).filter(|port| usize::from(*port) < self.ports.len()) {
                Some(destination) => {
                    self.processors.keep_awake();
                    let (bytes, content) = (frame.len() as u32, Box::from(frame));
                    self.fabric.send(self.time, (source, destination), bytes, content);
                }
                None => self.tally.stray += 1,
            }
        }
        self.hold_back(source);
        Ok(())
    }

    /// Stops reading a port that fills the memory, and begins again.
    fn hold_back(&mut self, port: PortIndex) {
        let held = self.fabric.held(port);
        let SwitchPort { tap, is_read } = &mut self.ports[usize::from(port)];
        let flags = match *is_read {
            true if held > MAX_HELD_BYTES => EventFlags::empty(),
            false if held < MAX_HELD_BYTES / 2 => EventFlags::IN,
            _ => return,
        };
        let changed = epoll::modify(&self.epoll, tap, EventData::new_u64(port.into()), flags);
        // It fails only for a device that is gone, which the next event tells.
        *is_read = changed.is_ok() != *is_read;
    }

    /// Tells whoever asks how it serves.
    fn answer(&self, realtime: bool) -> Result<()> {
        let Ok((mut asker, _)) = self.listener.accept() else { return Ok(()) };
        let FrameTally { frames, bytes, refused, stray, ref lateness, ref held } = self.tally;
        let service = Service {
            realtime,
            frames,
            bytes,
            lost: self.fabric.lost(),
            refused,
            stray,
            lateness: lateness.percentiles(),
            held: held.percentiles(),
        };
        // Whoever went away again does not want the answer.
        let _ = asker.write_all(document::text(&service)?.as_bytes());
        Ok(())
    }
}

fn watch(epoll: &OwnedFd, what: impl AsFd, mark: u64) -> Result<()> {
    epoll::add(epoll, what, EventData::new_u64(mark), EventFlags::IN)
        .context("cannot wait for a file")
}

fn now() -> Nanoseconds {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as Nanoseconds * 1_000_000_000 + tv_nsec as Nanoseconds
}
