//! The sources of `crates/wraith-c` as one file for cbindgen, which expands no macros: `export!`,
//! `c_enum!`, `c_struct!` and the tables of reasons and events are expanded here.

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
        } else if line == "c_enum! {" || line == "c_struct! {" {
            out.push_str(if line == "c_enum! {" { "#[repr(u32)]\n" } else { "#[repr(C)]\n" });
            lines.by_ref().take_while(|line| *line != "}").for_each(|line| {
                out.push_str(&definition(line));
                out.push('\n');
            });
        } else if let Some(table) = line.strip_prefix("include!(\"") {
            let table = table.strip_suffix("\");").context("the table has a path")?;
            let table = file.with_file_name(table);
            let text = std::fs::read_to_string(&table)?;
            out.push_str(&match table.file_stem().and_then(|name| name.to_str()) {
                Some("events") => events(&text)?,
                _ => statuses(&text)?,
            });
        } else if !line.starts_with("//!") && !line.starts_with("#!") {
            out.push_str(line);
            out.push('\n');
        }
    }
    Ok(out)
}

/// Returns a line of an enum or a struct in C. The source of a conversion is left out.
fn definition(line: &str) -> String {
    let is_variant = line.trim_start().starts_with("WRAITH_");
    match (line.split_once(" of "), line.split_once(": ")) {
        (Some((start, _)), _) if line.ends_with('{') => format!("{start} {{"),
        (_, Some((start, _))) if is_variant => format!("{start},"),
        _ => line.to_owned(),
    }
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
        } else if let Some((status, number)) = number_of(line)? {
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

/// Returns the enums of the table of events, each in the order of its numbers. The documentation of
/// a kind names the fields of `wraith_event_t` that it uses.
fn events(table: &str) -> Result<String> {
    let (values, kinds) = table.split_once("\nevents! {").context("the table has events")?;
    let mut out = String::new();
    let (mut docs, mut rows, mut enums) = (Vec::new(), Vec::new(), Vec::new());
    for line in values.lines().skip_while(|line| *line != "values! {").map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc);
        } else if let Some((name, number)) = number_of(line)? {
            rows.push(Row { number, name, docs: std::mem::take(&mut docs), fields: Vec::new() });
        } else if let Some((name, c_name)) = line.trim_end_matches(" {").split_once(" wraith_") {
            out.push_str(&docs.drain(..).map(|doc| format!("///{doc}\n")).collect::<String>());
            out.push_str(&format!("#[repr(u32)]\npub enum wraith_{c_name} {{\n"));
            enums.push((name, format!("`wraith_{c_name}`")));
        } else if line == "}" && !rows.is_empty() {
            out.push_str(&enumerators(&mut rows));
        }
    }
    out.push_str("/// The kind of an event. Later versions add numbers; ignore unknown ones.\n");
    out.push_str("#[repr(u32)]\npub enum wraith_event_kind_t {\n");
    for line in kinds.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc);
        } else if let Some((name, number)) = number_of(line)? {
            rows.push(Row { number, name, docs: std::mem::take(&mut docs), fields: Vec::new() });
        } else {
            let doc = docs.drain(..).collect::<String>();
            if let Some(row) = rows.last_mut() {
                row.fields.extend(field(line, &doc, &enums));
            }
        }
    }
    out.push_str(&enumerators(&mut rows));
    Ok(out)
}

/// A row of the table, with the documentation of its fields.
struct Row<'a> {
    number: u32,
    name: &'a str,
    docs: Vec<&'a str>,
    fields: Vec<String>,
}

/// Returns the documentation of a field of an event that C has.
fn field(line: &str, doc: &str, enums: &[(&str, String)]) -> Option<String> {
    let place = line.split(' ').next()?;
    let (shown, nothing) = match place {
        "address" => ("text", "empty"),
        "error" => ("status` and `text", "empty"),
        "text" | "path" | "peer" => (place, "empty"),
        "count" | "bytes" | "detail" => (place, "0"),
        _ => return None,
    };
    let is_of = |(name, _): &&(&str, String)| line.contains(&format!(": {name} = "));
    let of = enums.iter().find(is_of).map(|(_, of)| format!(", a {of}")).unwrap_or_default();
    Some(format!("/// `{shown}`{of}:{}\n", doc.replace("null", nothing)))
}

/// Returns the name and number of a row `Name WRAITH_NAME = 1`.
fn number_of(line: &str) -> Result<Option<(&str, u32)>> {
    let Some((names, number)) = line.split_once(" = ") else { return Ok(None) };
    let name = names.split(' ').next_back().filter(|name| name.starts_with("WRAITH_"));
    let number = number.split([',', ':']).next().unwrap_or(number);
    name.map(|name| Ok((name, number.parse()?))).transpose()
}

fn enumerators(rows: &mut Vec<Row<'_>>) -> String {
    rows.sort_by_key(|row| row.number);
    let mut out = String::new();
    for Row { number, name, docs, fields } in rows.drain(..) {
        docs.iter().for_each(|doc| out.push_str(&format!("///{doc}\n")));
        out.push_str(&fields.concat());
        out.push_str(&format!("{name} = {number},\n"));
    }
    out + "}\n"
}
