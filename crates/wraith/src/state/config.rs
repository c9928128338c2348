//! The config file: TOML text that people write and the program changes. The program defines the
//! meaning of its keys.

use std::path::Path;

use super::error::StateError;
use super::file::{Format, StateFile, version_in_toml};
use super::folder::check_folder;

const NAME: &str = "config.toml";
const FORMAT: Format = Format {
    version: 1,
    version_of: version_in_toml,
    // Far more than all settings with a page of comments on each.
    max_bytes: 256 << 10,
    is_secret: false,
};

/// The config file in a folder. A top-level key `version` gives its format; the default is 1.
#[derive(Clone, Debug)]
pub struct ConfigFile(StateFile);

impl ConfigFile {
    /// Returns the config file of this folder. Neither needs to exist.
    pub fn in_folder(folder: &Path) -> Self {
        Self(StateFile::new(folder, NAME, FORMAT))
    }

    /// Returns the path of the file, whether it exists or not.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Reads the text; empty if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, has a newer version, or is in a folder that others can
    /// write to.
    pub fn read(&self) -> Result<String, StateError> {
        let found = self.0.read();
        if let Ok(None) = found {
            return Ok(String::new());
        }
        // A folder that others can write to is the more important error.
        self.path().parent().map_or(Ok(()), check_folder)?;
        Ok(found?.map_or_else(String::new, |text| text.to_string()))
    }

    /// Replaces the text by the result of `change`. Concurrent changes by several processes are
    /// serialized.
    ///
    /// # Errors
    /// Those of `change` and of [`Self::read`], or the file cannot be written. The old file is then
    /// unchanged.
    pub fn change<E: From<StateError>>(
        &self,
        change: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<(), E> {
        self.0.change(|text| Ok((Some(change(text.unwrap_or_default())?.into()), ())))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::state::StateErrorKind;

    #[test]
    fn a_newer_config_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let config = ConfigFile::in_folder(folder.path());
        for (text, is_newer) in [("timeout = 5\n", false), ("version = 1\n", false)] {
            fs::write(config.path(), text).unwrap();
            assert_eq!(config.read().is_err(), is_newer);
        }
        let newer = "version = 2\n[what-only-it-knows]\n";
        fs::write(config.path(), newer).unwrap();
        let changed = config.change(|_| Ok::<_, StateError>(String::new()));
        assert_eq!(changed.unwrap_err().kind(), StateErrorKind::Newer);
        assert_eq!(fs::read_to_string(config.path()).unwrap(), newer);
    }
}
