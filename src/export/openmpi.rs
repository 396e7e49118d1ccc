//! Open MPI's classic rules file for component coll/tuned, as 4.0, 4.1 and 5.0 read it.
//!
//! The reader takes whitespace-separated numbers and skips `#` comments. A communicator takes the
//! last section whose size is at most its own, a call the last band whose first byte is at most
//! its message; algorithm 0 leaves the call to the library. So each collective begins with a
//! section 0 and ends with a section past the largest size measured, each section with a band 0,
//! and nothing is claimed outside the grid. (Open MPI 6 reads sections of a classic file shifted
//! by one; it wants the JSON form.)

use anyhow::{Result, bail};
use records::{Algorithm, Collective, Method, openmpi, quantity};
use verification::rules::{Band, Rules, Section};

use super::Export;

/// Open MPI's fan-out of k-chains where nothing else is said; the rules file must say it.
const CHAIN_FAN_OUT: u32 = 4;

/// Open MPI's number of a collective (`coll_base_functions.h`), the same from 4.0 to 6.0.
fn collective_id(collective: Collective) -> Option<u32> {
    match collective {
        Collective::Bcast => Some(7),
        Collective::Reduce => Some(11),
        _ => None,
    }
}

pub(super) fn text(export: &Export<'_>) -> Result<String> {
    let mut text = String::from("# Open MPI coll/tuned rules (4.0 to 5.0), written by colibri\n");
    for line in export.origin {
        text += &format!("# {line}\n");
    }
    text += &format!("{} # collectives\n", export.rules.len());
    for rules in export.rules {
        collective(&mut text, rules)?;
    }
    Ok(text)
}

fn collective(text: &mut String, rules: &Rules) -> Result<()> {
    let Rules { collective, sections } = rules;
    let Some(id) = collective_id(*collective) else {
        bail!(
            "{collective} cannot be written as Open MPI rules: its algorithms are not known here"
        );
    };
    let last = sections.last().map_or(0, |section| section.procs);
    *text += &format!("{id} # {collective}; message size: {}\n", collective.message_size());
    *text += &format!("{} # communicator sizes\n", sections.len() + 2);
    *text += "0 1 # smaller than measured: left to the library\n0 0 0 0\n";
    for section in sections {
        write_section(text, *collective, section)?;
    }
    *text += &format!("{} 1 # larger than measured: left to the library\n0 0 0 0\n", last + 1);
    Ok(())
}

fn write_section(text: &mut String, collective: Collective, section: &Section) -> Result<()> {
    let mut bands = Vec::new();
    let default = |from_bytes| Band { from_bytes, method: Method::Default };
    if section.bands.first().is_none_or(|first| first.from_bytes > 0) {
        bands.push(default(0));
    }
    bands.extend(section.bands.iter().cloned());
    bands.push(default(section.last_bytes + 1));
    bands.dedup_by(|next, kept| next.method == kept.method);
    *text += &format!(
        "{} {} # processes, bands: bytes algorithm fan-out segment\n",
        section.procs,
        bands.len()
    );
    for Band { from_bytes, method } in bands {
        let (id, fan_out, segment_bytes) = columns(collective, &method)?;
        let size = quantity::format_bytes(from_bytes);
        let name = method.short();
        *text += &format!("{from_bytes} {id} {fan_out} {segment_bytes} # from {size}: {name}\n");
    }
    Ok(())
}

/// The columns algorithm, fan-out and segment size of a band.
fn columns(collective: Collective, method: &Method) -> Result<(u32, u32, u64)> {
    let native = match method {
        Method::Default => return Ok((0, 0, 0)),
        Method::Native(native) => native,
        Method::Own { .. } | Method::Mockup(_) => {
            bail!("{method} is not an algorithm of Open MPI; its rules cannot name it")
        }
    };
    let Some(row) = openmpi::find(collective, native.algorithm) else {
        bail!("Open MPI has no {} for {collective}", native.algorithm);
    };
    let fan_out = if native.algorithm == Algorithm::KChain { CHAIN_FAN_OUT } else { 0 };
    Ok((row.id, fan_out, native.segment_bytes))
}

pub(super) fn how_to_load(file: &str) -> String {
    format!(
        "Open MPI 4.0 to 5.0:  mpirun --mca coll_tuned_use_dynamic_rules 1 \
         --mca coll_tuned_dynamic_rules_filename {file} ...\n\
         or for every run:     export OMPI_MCA_coll_tuned_use_dynamic_rules=1 \
         OMPI_MCA_coll_tuned_dynamic_rules_filename={file}\n\
         (Open MPI 5.0 across nodes: also --mca coll_han_priority 0, or coll/han takes the call first)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that Open MPI's reader sees: comments go, the rest is split at blanks.
    fn numbers(text: &str) -> Vec<u64> {
        text.lines()
            .map(|line| line.split('#').next().unwrap_or_default())
            .flat_map(str::split_whitespace)
            .map(|word| word.parse().unwrap())
            .collect()
    }

    fn band(from_bytes: u64, method: &str) -> Band {
        Band { from_bytes, method: method.parse().unwrap() }
    }

    #[test]
    fn nothing_is_claimed_outside_the_grid() {
        let bands = vec![
            band(1, "default"),
            band(3000, "native:openmpi:k-chain,segment=1KiB"),
            band(65536, "native:openmpi:pipeline,segment=8KiB"),
        ];
        let sections = vec![Section { procs: 8, bands, last_bytes: 1 << 20 }];
        let rules = [Rules { collective: Collective::Bcast, sections }];
        let export = Export { rules: &rules, origin: &["a test with 3 words".into()] };
        let wanted = [
            1, 7, 3, // one collective: bcast, three communicator sizes
            0, 1, 0, 0, 0, 0, // smaller ones
            8, 4, 0, 0, 0, 0, 3000, 2, 4, 1024, 65536, 3, 0, 8192, 1_048_577, 0, 0, 0, // 8
            9, 1, 0, 0, 0, 0, // larger ones
        ];
        assert_eq!(numbers(&text(&export).unwrap()), wanted);
    }

    #[test]
    fn what_open_mpi_cannot_run_is_refused() {
        for method in ["own:pipeline", "native:openmpi:rabenseifner", "mockup:bcast_as_scatter"] {
            let bands = vec![band(1, method)];
            let sections = vec![Section { procs: 8, bands, last_bytes: 1 }];
            let rules = [Rules { collective: Collective::Bcast, sections }];
            assert!(text(&Export { rules: &rules, origin: &[] }).is_err(), "{method}");
        }
    }
}
