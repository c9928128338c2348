//! The sources of `crates/wraith-c` as one file for cbindgen, which expands no macros: `export!`
//! and the table of reasons are expanded here.

use std::path::Path;

use anyhow::{Context, Result};

/// Returns the source of a module and of the modules below it, in their order.
pub(crate) fn sources(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let is_root = matches!(file.file_stem(), Some(name) if name == "lib" || name == "mod");
    let folder = if is_root { file.with_file_name("") } else { file.with_extension("") };
    let (mut out, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        let module = line.trim_start_matches("pub ").strip_prefix("mod ");
        if let Some(module) = module.and_then(|rest| rest.strip_suffix(';')) {
            let alone = folder.join(module).with_extension("rs");
            let file = if alone.exists() { alone } else { folder.join(module).join("mod.rs") };
            out.push_str(&sources(&file)?);
        } else if line == "export!(" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != ");").collect();
            out.push_str(&functions(&block.join("\n"))?);
        } else if let Some(table) = line.strip_prefix("include!(\"") {
            let table = table.strip_suffix("\");").context("the table has a path")?;
            out.push_str(&statuses(&std::fs::read_to_string(file.with_file_name(table))?)?);
        } else if !line.starts_with("//!") && !line.starts_with("#!") {
            out.push_str(line);
            out.push('\n');
        }
    }
    Ok(out)
}

/// Returns the declarations of exported functions, with the C parameters of each argument as in
/// `border/export.rs`.
fn functions(block: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = block;
    while let Some((docs, behind)) = rest.split_once("    pub fn ") {
        let (name, behind) = behind.split_once('(').context("a function has arguments")?;
        let (args, behind) = behind.split_once(") -> Outcome").context("it has a result")?;
        let (result, behind) = behind.split_once(" {\n").context("it has a body")?;
        let (_, behind) = behind.split_once("\n    }").context("its body has an end")?;
        let mut params: Vec<String> = Vec::new();
        for arg in args.split(',').map(str::trim).filter(|arg| !arg.is_empty()) {
            let (arg, kind) = arg.split_once(": ").context("an argument has a type")?;
            params.extend(parameters(arg, kind));
        }
        if let Some(value) = result.strip_prefix('<').and_then(|value| value.strip_suffix('>')) {
            params.push(format!("out: *mut {value}"));
        }
        let params = params.join(", ");
        out.push_str(docs);
        out.push_str(&format!(
            "#[no_mangle]\npub extern \"C\" fn {name}({params}) -> wraith_status_t {{}}\n"
        ));
        rest = behind;
    }
    Ok(out)
}

/// Returns the C parameters of an argument.
fn parameters(arg: &str, kind: &str) -> Option<String> {
    let (kind, inner) = match kind.split_once('<') {
        Some((kind, inner)) => (kind, inner.trim_end_matches('>')),
        None => (kind, ""),
    };
    Some(match kind {
        "&Call" => return None,
        "Bytes" | "Text" | "Array" => format!("{arg}: *const u8, {arg}_len: usize"),
        "Messages" => format!("{arg}: *const wraith_bytes_t, count: usize"),
        "Object" | "Locked" => format!("{arg}: {inner}"),
        "Options" => format!("{arg}: *const {inner}"),
        "Buffer" => format!("{arg}: *mut u8, {arg}_cap: usize, {arg}_len: *mut usize"),
        "Out" | "OutOrNull" => format!("{arg}: *mut {inner}"),
        _ => format!("{arg}: {kind}"),
    })
}

/// Returns the statuses of the table of reasons, in the order of their numbers.
fn statuses(table: &str) -> Result<String> {
    let (mut rows, mut docs) = (Vec::new(), String::new());
    for line in table.lines().map(str::trim) {
        if line.starts_with("///") {
            docs.push_str(&format!("{line}\n"));
        } else if let Some((names, number)) = line.split_once(" = ") {
            let status = names.split(' ').next_back().context("a row has a status")?;
            let number: i32 = number.trim_end_matches(',').parse()?;
            rows.push((number, format!("{}{status} = {number},\n", std::mem::take(&mut docs))));
        } else {
            docs.clear();
        }
    }
    rows.sort();
    let rows: String = rows.into_iter().map(|(_, row)| row).collect();
    Ok(format!(
        "/// Result of a call. Later versions add numbers but never change one.\n#[repr(i32)]\n\
         pub enum wraith_status_t {{\n{rows}}}\n"
    ))
}
