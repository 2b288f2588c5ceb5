//! The few options of protoc that build scripts use, over a compiler in pure Rust.
//!
//! `-I DIR`, `-o FILE`, `--include_imports`, `--include_source_info` and file names do what they do in
//! protoc. Anything else is refused, so that a build script that wants more fails with a reason.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "protoc prints")]

use std::process::ExitCode;

#[derive(Default)]
struct Arguments {
    includes: Vec<String>,
    output: Option<String>,
    imports: bool,
    source_info: bool,
    files: Vec<String>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("protoc-shim: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let (option, attached) = match word.strip_prefix("-I").or_else(|| word.strip_prefix("--proto_path="))
        {
            Some(folder) => ("-I", Some(folder.to_owned()).filter(|folder| !folder.is_empty())),
            None => match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
                _ => (word.as_str(), None),
            },
        };
        let mut value = || attached.clone().or_else(|| words.next()).ok_or(format!("{word} needs a value"));
        match option {
            "-I" | "--proto_path" => arguments.includes.push(value()?),
            "-o" | "--descriptor_set_out" => arguments.output = Some(value()?),
            "--include_imports" => arguments.imports = true,
            "--include_source_info" => arguments.source_info = true,
            "--experimental_allow_proto3_optional" => {}
            "--version" => {
                println!("libprotoc 28.0");
                std::process::exit(0);
            }
            _ if option.starts_with('-') => return Err(format!("unknown option {word}")),
            _ => arguments.files.push(word.clone()),
        }
    }
    Ok(arguments)
}

fn run(arguments: Arguments) -> Result<(), String> {
    let output = arguments.output.ok_or("no -o FILE was given")?;
    let mut compiler = protox::Compiler::new(&arguments.includes).map_err(|e| e.to_string())?;
    compiler.include_imports(arguments.imports).include_source_info(arguments.source_info);
    for file in &arguments.files {
        compiler.open_file(file).map_err(|e| e.to_string())?;
    }
    std::fs::write(&output, compiler.encode_file_descriptor_set()).map_err(|e| format!("{output}: {e}"))
}
