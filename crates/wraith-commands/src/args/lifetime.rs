//! The lifetime of a code, and the check that all options with a time take the same forms.

use wraith_command_text::durations::seconds;

/// Parses the lifetime of a code in whole seconds; at least one.
pub fn lifetime(text: &str) -> Result<u64, String> {
    match seconds(text)? {
        0 => Err("a code needs a lifetime of at least one second".to_owned()),
        seconds => Ok(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_with_a_time_takes_units() {
        fn times(command: &clap::Command, found: &mut Vec<(String, clap::Arg)>) {
            for arg in command.get_arguments() {
                let names = arg.get_value_names().unwrap_or_default();
                assert!(!names.iter().any(|name| *name == "SECONDS"), "{arg}");
                if names.iter().any(|name| *name == "TIME") {
                    found.push((format!("{} {arg}", command.get_name()), arg.clone()));
                }
            }
            command.get_subcommands().for_each(|sub| times(sub, found));
        }
        let mut found = Vec::new();
        let mut definition = crate::args::definition();
        definition.build();
        times(&definition, &mut found);
        assert!(found.len() >= 7, "{found:?}");
        for (name, arg) in found {
            let long = arg.get_long().expect("it has a long name").to_owned();
            // Other options do not matter here.
            let arg = clap::Arg::new("time")
                .long(long.clone())
                .value_parser(arg.get_value_parser().clone());
            let command = clap::Command::new("wraith").no_binary_name(true).arg(arg);
            let fault = |value: &str| {
                let words = [format!("--{long}={value}")];
                command.clone().try_get_matches_from(words).err().map(|error| error.to_string())
            };
            for value in ["5m", "1h", "90", "1m30s"] {
                assert_eq!(fault(value), None, "{name}");
            }
            for value in ["5 minutes ago", "-1", "1e9", "99999999999999999999"] {
                let said = fault(value).unwrap_or_else(|| panic!("{name} takes {value}"));
                let is_told = said.contains("such as 90, 90s") || said.contains("the maximum is");
                assert!(is_told, "{name}: {said}");
            }
        }
    }

    #[test]
    fn lifetimes_are_whole_seconds() {
        assert!(lifetime("1500ms").is_err());
        assert!(lifetime("0").is_err() && lifetime("0h").is_err() && lifetime("1") == Ok(1));
    }
}
