//! Results of programs in the form of `record.py`, and whether two are the same.

use serde_json::{Value as Json, json};

/// A value of a reply: missing ones are null, times and durations are texts.
fn cell(json: &Json) -> Json {
    if json.get("na").is_some() {
        return Json::Null;
    }
    if let Some(float) = json.get("f") {
        return if float == "nan" { Json::Null } else { float.clone() };
    }
    if let Some(time) = json.get("ts").and_then(Json::as_str) {
        // The offset of a zone stands behind the time of the day.
        let day = time.find('T').unwrap_or(0);
        let zone = time[day..].find(['+', '-', 'Z']).map_or(time.len(), |at| day + at);
        let (clock, zone) = time.split_at(zone);
        let zone = if zone == "Z" { "+00:00" } else { zone };
        let (seconds, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        return json!(format!("ts:{seconds}.{fraction:0<9}{zone}"));
    }
    if let Some([count, unit]) = json.get("td").and_then(Json::as_array).map(Vec::as_slice) {
        let scale = match unit.as_str() {
            Some("s") => 1_000_000_000,
            Some("ms") => 1_000_000,
            Some("us") => 1_000,
            _ => 1,
        };
        return json!(format!("td:{}", count.as_i64().unwrap() * scale));
    }
    json.clone()
}

fn cells(json: &Json) -> Json {
    match json {
        Json::Array(parts) => parts.iter().map(cells).collect(),
        one => cell(one),
    }
}

/// A result of a reply: tables with their index, lists, dictionaries, values.
pub fn normal(json: &Json) -> Json {
    if let Some(table) = json.get("tbl") {
        return normal_table(table);
    }
    if let Some(array) = json.get("arr") {
        return json!({"arr": cells(&array["lit"])});
    }
    if let Some(parts) = json.get("t").and_then(Json::as_array) {
        return parts.iter().map(normal).collect();
    }
    if let Some(entries) = json.get("o").and_then(Json::as_array) {
        let entries = entries.iter().map(|entry| json!([normal(&entry[0]), normal(&entry[1])]));
        return json!({"dict": entries.collect::<Json>()});
    }
    cell(json)
}

fn normal_table(table: &Json) -> Json {
    let levels = table["index"].as_array().unwrap();
    let columns: Vec<Json> = table["lit"].as_array().unwrap().iter().map(cells).collect();
    let rows = columns.first().map_or(0, |column| column.as_array().unwrap().len());
    let positions: Vec<usize> = (0..rows).collect();
    let (index, values) = columns.split_at(levels.len());
    let names = table.get("names").unwrap_or(&table["index"]);
    let mut normal = json!({
        "names": if levels.is_empty() { json!([null]) } else { names.clone() },
        "index": if levels.is_empty() { json!([positions]) } else { json!(index) },
        "lit": values,
    });
    match table.get("name") {
        Some(name) => normal["name"] = name.clone(),
        None => normal["columns"] = json!(table["columns"].as_array().unwrap()[levels.len()..]),
    }
    normal
}

/// Whether a result is what pandas has given. Numbers are equal if they differ by the rounding of sums only;
/// the labels of an index come as a series here, or as a frame for several levels.
pub fn same(want: &Json, found: &Json) -> bool {
    match (want, found) {
        (Json::Object(want), Json::Object(found)) => {
            if let (Some(labels), Some(values)) = (want.get("labels"), found.get("lit")) {
                let names = found.contains_key("columns") || json!([found["name"]]) == want["names"];
                return names && same(labels, values);
            }
            want.len() == found.len()
                && want.iter().all(|(key, value)| found.get(key).is_some_and(|found| same(value, found)))
        }
        (Json::Object(want), Json::Array(_)) if want.contains_key("arr") => same(&want["arr"], found),
        (Json::Array(_), Json::Object(found)) if found.contains_key("arr") => same(want, &found["arr"]),
        (Json::Object(want), Json::Array(_)) if want.contains_key("labels") => {
            same(&want["labels"], &json!([found]))
        }
        (Json::Array(want), Json::Array(found)) => {
            want.len() == found.len() && want.iter().zip(found).all(|(want, found)| same(want, found))
        }
        (Json::Number(want), Json::Number(found)) => {
            let (want, found) = (want.as_f64().unwrap(), found.as_f64().unwrap());
            want == found || (want - found).abs() <= 1e-9 * want.abs().max(found.abs()).max(1.0)
        }
        _ => want == found,
    }
}
