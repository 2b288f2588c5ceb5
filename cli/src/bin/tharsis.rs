//! The `tharsis` command, which the library of this package is. The linker alone waits for all that is below:
//! the library is compiled beside them.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tharsis_cli::main()
}
