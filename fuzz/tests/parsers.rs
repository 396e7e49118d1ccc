//! Every parser of the packages that other packages use, on damaged inputs.

use fuzz::parsers;

fuzz::fuzz! {
    rules: parsers::rules(),
    profile: parsers::profile(),
    pgtune: parsers::pgtune(),
    usage: parsers::usage(),
    learned: parsers::learned(),
    candidates: parsers::candidates(),
    choices: parsers::choices(),
    plan: parsers::plan(),
    penalties: parsers::penalties(),
    pairs: parsers::pairs(),
    summary: parsers::summary(),
    check: parsers::check(),
    violations: parsers::violations(),
    agreement: parsers::agreement(),
    calibration: parsers::calibration(),
    observations: parsers::observations(),
    groups: parsers::groups(),
    links: parsers::links(),
    pair_times: parsers::pair_times(),
    osu: parsers::osu(),
    imb: parsers::imb(),
    reprompi: parsers::reprompi(),
    pico: parsers::pico(),
    csv: parsers::table(),
    job_script: parsers::job_script(),
    clock_errors: parsers::clock_errors(),
    measurements: parsers::measurements(),
    words: parsers::words(),
}

fuzz::fuzz_cut! {
    osu_from_the_middle: parsers::osu(),
    imb_from_the_middle: parsers::imb(),
    reprompi_from_the_middle: parsers::reprompi(),
    pico_from_the_middle: parsers::pico(),
    csv_from_the_middle: parsers::table(),
    job_script_from_the_middle: parsers::job_script(),
}
