//! Generates Verilog for synthesis, with a small processor, an arithmetic unit and a state machine
//! for each of several cores.

use super::rng::Rng;
use std::fmt::Write;

/// Generates a design whose top module joins `cores` different cores.
pub fn generate(seed: u64, cores: usize) -> String {
    let mut rng = Rng::new(seed);
    let mut out = String::new();
    for core in 0..cores {
        // Writing to a `String` cannot fail, so the results of `write!` are dropped.
        let _ = write!(
            out,
            "module core{core}(input clk, input rst, input [15:0] in, output reg [15:0] out);\n\
             \x20 reg [15:0] file [0:7];\n  reg [3:0] state;\n  wire [2:0] a = in[2:0], b = in[5:3];\n  reg [15:0] sum;\n\
             \x20 always @* case (in[9:6])\n"
        );
        for code in 0..16 {
            let operator = rng.pick(&["+", "-", "&", "|", "^", "<<", ">>"]);
            let right = if matches!(operator, "<<" | ">>") {
                "file[b][3:0]"
            } else {
                "file[b]"
            };
            let _ = writeln!(
                out,
                "    4'd{code}: sum = (file[a] {operator} {right}) ^ 16'd{};",
                rng.below(65_536)
            );
        }
        out.push_str("  endcase\n  always @(posedge clk)\n    if (rst) begin state <= 0; out <= 0; end\n    else begin\n      case (state)\n");
        for state in 0..16 {
            let _ = writeln!(
                out,
                "        4'd{state}: if (sum[{}]) state <= 4'd{}; else state <= 4'd{};",
                rng.below(16),
                rng.below(16),
                rng.below(16)
            );
        }
        out.push_str("      endcase\n      file[in[12:10]] <= sum;\n      out <= sum + {12'd0, state};\n    end\nendmodule\n\n");
    }
    out.push_str("module top(input clk, input rst, input [15:0] in, output [15:0] out);\n");
    for core in 0..cores {
        let _ = writeln!(
            out,
            "  wire [15:0] w{core};\n  core{core} c{core}(clk, rst, {}, w{core});",
            match core {
                0 => "in".to_owned(),
                _ => format!("w{}", core - 1),
            }
        );
    }
    let _ = writeln!(out, "  assign out = w{};\nendmodule", cores - 1);
    out
}
