//! The Ethernet addresses of ports: given, not learnt, so that no node ever asks for one.

use crate::PortIndex;

/// Locally administered, to one station.
const PREFIX: [u8; 5] = [0x02, b'c', b'o', b'l', b'i'];

/// A port's address, as `ip` reads it.
pub fn address_of(port: PortIndex) -> String {
    let [a, b, c, d, e] = PREFIX;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{port:02x}")
}

/// The port that an Ethernet frame is for; none for a broadcast or another's address.
pub fn port_of(frame: &[u8]) -> Option<PortIndex> {
    match frame.split_first_chunk::<5>()? {
        (&PREFIX, [port, ..]) => Some((*port).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_its_port() {
        for port in [0, 9, 65, 255] {
            let address = address_of(port);
            let bytes: Vec<u8> =
                address.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
            assert_eq!((bytes.len(), port_of(&bytes)), (6, Some(port)));
        }
        assert_eq!(port_of(&[0xff; 60]), None);
        assert_eq!(port_of(&PREFIX), None);
    }
}
