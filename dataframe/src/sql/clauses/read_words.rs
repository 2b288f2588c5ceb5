//! Statements whose words are put into another order before the parser reads them.
//!
//! Each word keeps the place that it has in the text, so that mistakes are told with it.

use super::{asof_joins, json_arrows, pivot_statements};
use crate::sql::words::may_have;
use datafusion::common::Result as EngineResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::dialect::{Dialect, dialect_from_str};
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use datafusion::sql::parser::{DFParserBuilder, Statement};

/// The statement of a text.
pub(in crate::sql) fn statement(text: &str, state: &SessionState) -> EngineResult<Statement> {
    let options = &state.config().options().sql_parser;
    let dialect = dialect_from_str(options.dialect);
    let written = dialect.as_ref().and_then(|dialect| Some((dialect, written(text, &**dialect)?)));
    let Some((dialect, tokens)) = written else { return state.sql_to_statement(text, &options.dialect) };
    let parser = DFParserBuilder::new(tokens).with_dialect(&**dialect);
    let parser = parser.with_recursion_limit(options.recursion_limit.get());
    let mut statements = parser.build()?.parse_statements()?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(mut statement), true) => {
            asof_joins::write_kinds(&mut statement);
            Ok(statement)
        }
        _ => state.sql_to_statement(text, &options.dialect),
    }
}

/// The words of a text in the order of the parser; none for a text that has this order.
fn written(text: &str, dialect: &dyn Dialect) -> Option<Vec<TokenWithSpan>> {
    let words = [asof_joins::ASOF, json_arrows::ARROW, pivot_statements::PIVOT];
    if !words.iter().any(|word| may_have(text, word)) {
        return None;
    }
    let mut tokens = Tokenizer::new(dialect, text).tokenize_with_location().ok()?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let has_arrows = json_arrows::write(&mut tokens);
    let has_joins = asof_joins::mark(&mut tokens);
    let has_pivots = pivot_statements::write(&mut tokens);
    (has_arrows || has_joins || has_pivots).then_some(tokens)
}
