/**
 * Reads rows of a predicted shape from JSON text into columns, in one pass and without any allocation. AssemblyScript;
 * `src/planner/formats/row-scanner.ts` is its only caller and says what its memory holds. What must hold:
 *
 * - it takes a row exactly as the general reader would, or leaves it alone: whatever it has not been made for
 *   ends the run in front of that row;
 * - names are compared as bytes of a table; nothing of a body ever decides which code runs;
 * - behind the text stand 64 zero bytes, which nothing accepts: no loop runs beyond them, and no byte needs a bound.
 */

// Where things lie: the same numbers stand in `src/planner/formats/row-scanner.ts`.
const TEXT_AT: usize = 4096;
const TEXT_BYTES: usize = 65536;
/** Per column: name's offset, name's size, kind, 1 when a NULL may have been written. */
const COLUMNS_AT: usize = TEXT_AT + TEXT_BYTES + 64;
const COLUMNS_MAX: usize = 128;
const NAMES_AT: usize = COLUMNS_AT + COLUMNS_MAX * 16;
const NAMES_BYTES: usize = 16384;
const ROWS_MAX: usize = 1024;
/** Cells that the caller reads itself: row, column, first byte, byte after the last. */
const DEFERRED_AT: usize = NAMES_AT + NAMES_BYTES + 64;
const DEFERRED_MAX: usize = 4096;
/** Per column: NULL marks, offsets or 8-byte values, the same narrowed, UTF-8. */
const CELLS_AT: usize = DEFERRED_AT + DEFERRED_MAX * 16;
const VALUES: usize = ROWS_MAX;
const NARROW: usize = VALUES + ROWS_MAX * 8 + 64;
const HEAP: usize = NARROW + ROWS_MAX * 8;
const CELLS_BYTES: usize = HEAP + TEXT_BYTES + 64;

const KIND_UNTYPED: u32 = 0;
const KIND_TEXT: u32 = 1;
const KIND_INTEGER: u32 = 2;
const KIND_NUMBER: u32 = 3;
const KIND_BOOLEAN: u32 = 4;
const KIND_TIMESTAMP: u32 = 5;
const KIND_KEY_TEXT: u32 = 6;

const POWERS_AT: usize = 1024;
for (let i: usize = 0, power: f64 = 1; i < 23; i++, power *= 10) store<f64>(POWERS_AT + i * 8, power);

/**
 * After a run: the place behind what was taken, counted bytes, cells in the table of the deferred, where those of the row
 * that ended the run may be the last.
 */
export let at: u32 = 0;
export let bytesTaken: u32 = 0;
export let deferred: u32 = 0;
/** Between elements of an array: a comma is the next thing. */
export let afterRow: bool = false;
/** The run ended at a row that it has not been made for, or that the text does not hold to its end. */
export let surprised: bool = false;

let validText: bool = false;

/**
 * Rows from `from` on until there are `rowsMax` of them or they took `bytesMax` bytes. `byLine`: a line feed follows each
 * (NDJSON), else commas stand between them. Bytes count as the general reader counts them: without space before a row.
 */
export function scan(from: u32, byLine: bool, columns: u32, rowsMax: u32, bytesMax: u32, valid: bool): u32 {
  let rows: u32 = 0;
  at = from;
  bytesTaken = 0;
  deferred = 0;
  afterRow = false;
  surprised = false;
  validText = valid;
  for (let column: u32 = 0; column < columns; column++) {
    store<u32>(COLUMNS_AT + (column << 4), 0, 12);
    // Where the first text begins; a number there is written over.
    store<u32>(CELLS_AT + <usize>column * CELLS_BYTES + VALUES, 0);
  }
  while (rows < rowsMax && bytesTaken < bytesMax) {
    if (deferred + columns > <u32>DEFERRED_MAX) return rows;
    let place = at;
    if (!byLine) place = skipSpace(place);
    const start = place;
    place = readRow(place, columns, rows);
    if (byLine && place != 0) {
      let byte = load<u8>(TEXT_AT + place);
      while (byte == 0x20 || byte == 0x09 || byte == 0x0d) byte = load<u8>(TEXT_AT + ++place);
      place = byte == 0x0a ? place + 1 : 0;
    }
    if (place == 0) {
      surprised = true;
      return rows;
    }
    rows++;
    bytesTaken += place - start;
    at = place;
    if (byLine) continue;
    afterRow = true;
    if (rows >= rowsMax || bytesTaken >= bytesMax) return rows;
    place = skipSpace(place);
    if (load<u8>(TEXT_AT + place) != 0x2c) {
      surprised = true;
      return rows;
    }
    at = place + 1;
    bytesTaken++;
    afterRow = false;
  }
  return rows;
}

// @ts-ignore: decorator
@inline
function skipSpace(from: u32): u32 {
  let place = from;
  let byte = load<u8>(TEXT_AT + place);
  while (byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09) byte = load<u8>(TEXT_AT + ++place);
  return place;
}

/** Place behind the row's closing brace; 0 when it is not as predicted. */
function readRow(from: u32, columns: u32, row: u32): u32 {
  let place: usize = TEXT_AT + from;
  if (load<u8>(place) != 0x7b) return 0;
  place++;
  let column: u32 = 0;
  for (;;) {
    if (load<u8>(place) == 0x20) place++;
    if (load<u8>(place) != 0x22) return 0;
    // Columns in between are missing from this row; one that came already is never found again.
    for (;;) {
      if (column >= columns) return 0;
      const size = load<u32>(COLUMNS_AT + (column << 4), 4);
      if (isNamed(place, NAMES_AT + load<u32>(COLUMNS_AT + (column << 4)), size)) {
        place += size;
        break;
      }
      putNull(column++, row);
    }
    if (load<u8>(place) == 0x20) place++;
    place = readCell(place, column, row);
    if (place == 0) return 0;
    column++;
    let byte = load<u8>(place);
    if (byte == 0x20) byte = load<u8>(++place);
    if (byte == 0x2c) {
      place++;
      continue;
    }
    if (byte != 0x7d) return 0;
    for (; column < columns; column++) putNull(column, row);
    return <u32>(place + 1 - TEXT_AT);
  }
}

/** A name lies with its quotes and colon, and zeros up to a multiple of 8. */
// @ts-ignore: decorator
@inline
function isNamed(place: usize, name: usize, size: u32): bool {
  let i: u32 = 0;
  for (; i + 8 <= size; i += 8) if (load<u64>(place + i) != load<u64>(name + i)) return false;
  const rest = size - i;
  return rest == 0 || (load<u64>(place + i) ^ load<u64>(name + i)) << (64 - (rest << 3)) == 0;
}

function putNull(column: u32, row: u32): void {
  const cells = CELLS_AT + <usize>column * CELLS_BYTES;
  store<u32>(COLUMNS_AT + (column << 4), 1, 12);
  store<u8>(cells + row, 1);
  const kind = load<u32>(COLUMNS_AT + (column << 4), 8);
  if (kind == KIND_TEXT || kind == KIND_KEY_TEXT) {
    const offset = cells + VALUES + (row << 2);
    store<u32>(offset, load<u32>(offset), 4);
  } else if (kind == KIND_BOOLEAN) store<u8>(cells + VALUES + row, 0);
  else store<u64>(cells + VALUES + (row << 3), 0);
}

/** Place behind the cell; 0 when it is not as predicted. */
// @ts-ignore: decorator
@inline
function readCell(from: usize, column: u32, row: u32): usize {
  const cells = CELLS_AT + <usize>column * CELLS_BYTES;
  const first = load<u8>(from);
  if (first == 0x6e) {
    if (load<u32>(from) != 0x6c6c756e) return 0;
    putNull(column, row);
    return from + 4;
  }
  store<u8>(cells + row, 0);
  switch (load<u32>(COLUMNS_AT + (column << 4), 8)) {
    case KIND_TEXT:
      return first == 0x22 ? readText(from + 1, cells, row) : 0;
    case KIND_INTEGER:
      return readInteger(from, cells + VALUES + (row << 3));
    case KIND_NUMBER:
      return readNumber(from, cells + VALUES + (row << 3), column, row);
    case KIND_BOOLEAN:
      return readBoolean(from, cells + VALUES + row);
    case KIND_TIMESTAMP:
      if (first != 0x22) return readInteger(from, cells + VALUES + (row << 3));
      return readInstant(from + 1, cells + VALUES + (row << 3), column, row);
    case KIND_KEY_TEXT:
      return first == 0x22 ? readText(from + 1, cells, row) : readDigits(from, cells, row);
    default:
      return 0;
  }
}

// @ts-ignore: decorator
@inline
function readText(from: usize, cells: usize, row: u32): usize {
  const offset = cells + VALUES + (row << 2);
  let target = cells + HEAP + load<u32>(offset);
  let place = from;
  let high: u32 = 0;
  for (;;) {
    let block = v128.load(place);
    v128.store(target, block);
    let ends = stopsIn(block);
    while (ends == 0) {
      high |= i8x16.bitmask(block);
      place += 16;
      target += 16;
      block = v128.load(place);
      v128.store(target, block);
      ends = stopsIn(block);
    }
    const rest = ctz(ends);
    high |= i8x16.bitmask(block) & ((1 << rest) - 1);
    place += rest;
    target += rest;
    const stop = load<u8>(place);
    if (stop == 0x22) break;
    if (stop != 0x5c) return 0;
    if (load<u8>(place, 1) == 0x75) {
      target = putUnit(target, place + 2);
      if (target == 0) return 0;
      place += 6;
      continue;
    }
    const meaning = meaningOf(load<u8>(place, 1));
    if (meaning == 0) return 0;
    store<u8>(target++, meaning);
    place += 2;
  }
  if (high != 0 && !validText) return 0;
  store<u32>(offset, <u32>(target - cells - HEAP), 4);
  return place + 1;
}

/** What a backslash makes of a letter; 0: it is unknown. */
function meaningOf(letter: u8): u8 {
  switch (letter) {
    case 0x22:
    case 0x5c:
    case 0x2f:
      return letter;
    case 0x62:
      return 0x08;
    case 0x66:
      return 0x0c;
    case 0x6e:
      return 0x0a;
    case 0x72:
      return 0x0d;
    case 0x74:
      return 0x09;
    default:
      return 0;
  }
}

/** UTF-8 of four hexadecimal digits; gives the place behind it, or 0 where they are none, or half of a surrogate pair. */
function putUnit(target: usize, digits: usize): usize {
  let unit: u32 = 0;
  for (let i: usize = 0; i < 4; i++) {
    const byte = <u32>load<u8>(digits + i);
    const letter = (byte | 0x20) - 0x61;
    const digit = letter < 6 ? letter + 10 : byte - 0x30;
    if (digit > 15 || (letter >= 6 && digit > 9)) return 0;
    unit = (unit << 4) | digit;
  }
  if (unit < 0x80) {
    store<u8>(target, <u8>unit);
    return target + 1;
  }
  if (unit < 0x800) {
    store<u8>(target, <u8>(0xc0 | (unit >> 6)));
    store<u8>(target, <u8>(0x80 | (unit & 63)), 1);
    return target + 2;
  }
  if (unit >= 0xd800 && unit <= 0xdfff) return 0;
  store<u8>(target, <u8>(0xe0 | (unit >> 12)));
  store<u8>(target, <u8>(0x80 | ((unit >> 6) & 63)), 1);
  store<u8>(target, <u8>(0x80 | (unit & 63)), 2);
  return target + 3;
}

/** Which bytes of a text end its plain part: quotes, backslashes and controls. */
// @ts-ignore: decorator
@inline
function stopsIn(block: v128): u32 {
  const marks = v128.or(i8x16.eq(block, i8x16.splat(0x22)), i8x16.eq(block, i8x16.splat(0x5c)));
  return i8x16.bitmask(v128.or(marks, i8x16.lt_u(block, i8x16.splat(0x20))));
}

/** An integer token as a text: of at most 15 digits, so that it is one for the general reader as well. */
function readDigits(from: usize, cells: usize, row: u32): usize {
  const digitsFrom = load<u8>(from) == 0x2d ? from + 1 : from;
  let place = digitsFrom;
  while (<u32>load<u8>(place) - 0x30 <= 9) place++;
  const digits = place - digitsFrom;
  if (digits == 0 || digits > 15 || (load<u8>(digitsFrom) == 0x30 && (digits > 1 || digitsFrom != from))) return 0;
  const offset = cells + VALUES + (row << 2);
  const used = load<u32>(offset);
  v128.store(cells + HEAP + used, v128.load(from));
  store<u32>(offset, used + <u32>(place - from), 4);
  return place;
}

// @ts-ignore: decorator
@inline
function digitAt(place: usize): u32 {
  return <u32>load<u8>(place) - 0x30;
}

// @ts-ignore: decorator
@inline
function readInteger(from: usize, target: usize): usize {
  const negative = load<u8>(from) == 0x2d;
  const digitsFrom = from + <usize>negative;
  let value: u64 = 0;
  let place = digitsFrom;
  for (let digit = digitAt(place); digit <= 9; digit = digitAt(++place)) value = value * 10 + digit;
  const digits = place - digitsFrom;
  if (digits == 0 || digits > 19 || value > 9223372036854775807) return 0;
  if (load<u8>(digitsFrom) == 0x30 && (digits > 1 || negative)) return 0;
  store<i64>(target, negative ? -(<i64>value) : <i64>value);
  return place;
}

/** Up to 2^53 both operands are exact doubles, so that their quotient is the correctly rounded value. */
// @ts-ignore: decorator
@inline
function readNumber(from: usize, target: usize, column: u32, row: u32): usize {
  const negative = load<u8>(from) == 0x2d;
  const digitsFrom = from + <usize>negative;
  let value: u64 = 0;
  let place = digitsFrom;
  for (let digit = digitAt(place); digit <= 9; digit = digitAt(++place)) value = value * 10 + digit;
  let digits = place - digitsFrom;
  if (digits == 0 || (digits > 1 && load<u8>(digitsFrom) == 0x30)) return 0;
  let fraction: usize = 0;
  if (load<u8>(place) == 0x2e) {
    const fractionFrom = ++place;
    for (let digit = digitAt(place); digit <= 9; digit = digitAt(++place)) value = value * 10 + digit;
    fraction = place - fractionFrom;
    if (fraction == 0) return 0;
    digits += fraction;
  }
  if ((load<u8>(place) | 0x20) == 0x65) {
    place++;
    if (load<u8>(place) == 0x2b || load<u8>(place) == 0x2d) place++;
    const exponentFrom = place;
    while (digitAt(place) <= 9) place++;
    if (place == exponentFrom) return 0;
    defer(from, place, column, row);
    return place;
  }
  if (digits <= 19 && value <= 9007199254740992) {
    const quotient = <f64>value / load<f64>(POWERS_AT + (fraction << 3));
    store<f64>(target, negative ? -quotient : quotient);
    return place;
  }
  // An integer that a double may not hold is for the general reader to judge.
  if (fraction == 0) return 0;
  defer(from, place, column, row);
  return place;
}

// @ts-ignore: decorator
@inline
function readBoolean(from: usize, target: usize): usize {
  const word = load<u32>(from);
  if (word == 0x65757274) {
    store<u8>(target, 1);
    return from + 4;
  }
  if (word != 0x736c6166 || load<u8>(from, 4) != 0x65) return 0;
  store<u8>(target, 0);
  return from + 5;
}

/** Text of an instant: forms that are not the common ones are left to the caller. */
function readInstant(from: usize, target: usize, column: u32, row: u32): usize {
  let place = from;
  for (;;) {
    const byte = load<u8>(place);
    if (byte == 0x22) break;
    if (byte < 0x20 || byte > 0x7e || byte == 0x5c) return 0;
    place++;
  }
  const value = instantOf(from, <u32>(place - from));
  if (value == NO_INSTANT) defer(from, place, column, row);
  else store<i64>(target, value);
  return place + 1;
}

const NO_INSTANT: i64 = i64.MIN_VALUE;

/** Nanoseconds of `2024-05-01`, `2024-05-01T10:00:00Z` or the same with up to 9 digits of a second, in usual years. */
function instantOf(text: usize, size: u32): i64 {
  if (size != 10 && (size < 20 || size > 30 || size == 21)) return NO_INSTANT;
  if (load<u8>(text, 4) != 0x2d || load<u8>(text, 7) != 0x2d) return NO_INSTANT;
  const year = twoDigits(text) * 100 + twoDigits(text + 2);
  const month = twoDigits(text + 5);
  const day = twoDigits(text + 8);
  if (year < 1700 || year > 2200 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return NO_INSTANT;
  const days = <i64>daysFromEpoch(year, month, day);
  if (size == 10) return days * 86_400_000_000_000;
  if (load<u8>(text, 10) != 0x54 || load<u8>(text, 13) != 0x3a || load<u8>(text, 16) != 0x3a) return NO_INSTANT;
  if (load<u8>(text + size - 1) != 0x5a) return NO_INSTANT;
  const hour = twoDigits(text + 11);
  const minute = twoDigits(text + 14);
  const second = twoDigits(text + 17);
  if (hour > 23 || minute > 59 || second > 59) return NO_INSTANT;
  let nanoseconds: u32 = 0;
  if (size > 20) {
    if (load<u8>(text, 19) != 0x2e) return NO_INSTANT;
    for (let i: u32 = 20; i < 29; i++) {
      const digit: u32 = i < size - 1 ? digitAt(text + i) : 0;
      if (digit > 9) return NO_INSTANT;
      nanoseconds = nanoseconds * 10 + digit;
    }
  }
  return (days * 86_400 + <i64>(hour * 3600 + minute * 60 + second)) * 1_000_000_000 + <i64>nanoseconds;
}

/** Far above any number that is looked for where one of them is no digit. */
function twoDigits(place: usize): u32 {
  const tens = digitAt(place);
  const ones = digitAt(place + 1);
  return tens > 9 || ones > 9 ? 100_000 : tens * 10 + ones;
}

function daysIn(year: u32, month: u32): u32 {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/** Days since 1970-01-01, years counted from March, in eras of 400. */
function daysFromEpoch(year: u32, month: u32, day: u32): i32 {
  const y = month <= 2 ? year - 1 : year;
  const era = y / 400;
  const yearOfEra = y - era * 400;
  const dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear;
  return <i32>(era * 146_097 + dayOfEra) - 719_468;
}

function defer(from: usize, to: usize, column: u32, row: u32): void {
  const cell = DEFERRED_AT + (deferred++ << 4);
  store<u32>(cell, row);
  store<u32>(cell, column, 4);
  store<u32>(cell, <u32>(from - TEXT_AT), 8);
  store<u32>(cell, <u32>(to - TEXT_AT), 12);
}

/**
 * Writes a column's integers as the narrowest of i32 (gives 0) and f64 (1) that holds all of them exactly, or leaves them
 * as they are (2).
 */
export function narrow(column: u32, rows: u32): u32 {
  const cells = CELLS_AT + <usize>column * CELLS_BYTES;
  let low: i64 = 0;
  let high: i64 = 0;
  for (let row: u32 = 0; row < rows; row++) {
    const value = load<i64>(cells + VALUES + (row << 3));
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low >= -2147483648 && high <= 2147483647) {
    for (let row: u32 = 0; row < rows; row++) {
      store<i32>(cells + NARROW + (row << 2), load<i32>(cells + VALUES + (row << 3)));
    }
    return 0;
  }
  if (low < -9007199254740991 || high > 9007199254740991) return 2;
  for (let row: u32 = 0; row < rows; row++) {
    store<f64>(cells + NARROW + (row << 3), <f64>load<i64>(cells + VALUES + (row << 3)));
  }
  return 1;
}
