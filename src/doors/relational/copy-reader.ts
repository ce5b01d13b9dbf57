/** Splits the bytes of COPY FROM STDIN, cut anywhere, into rows and fields of text, CSV or binary. */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';
import type { RowBatch } from '../../log/values/columns.ts';
import { CopyBatch, type CopyColumn } from './copy-batch.ts';
import type { CopyFormat } from './copy-statement.ts';

const rowBytesMax = 16 << 20;
const copySignature = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');

export class CopyReader {
  readonly #copyFormat: CopyFormat;
  readonly #copyMarks: CopyMarks;
  /** The first `#windowLength` bytes of it are data; the row that is being read begins at `#rowOffset`. */
  #copyWindow: Buffer = Buffer.alloc(0);
  #windowLength = 0;
  #rowOffset = 0;
  #isCopyEnded = false;
  #expectsHeader: boolean;
  readonly #copyBatch: CopyBatch;
  /** Start of each field of the current row; fields that need decoding have a form. */
  readonly #copyFieldStarts: number[] = [];
  readonly #copyFieldEnds: number[] = [];
  readonly #copyFieldForms: FieldForm[] = [];
  #fieldCount = 0;
  #rowScan: RowScan = rowBeginning;

  constructor(copyFormat: CopyFormat, copyColumns: readonly CopyColumn[]) {
    this.#copyFormat = copyFormat;
    this.#copyBatch = new CopyBatch(copyColumns);
    this.#copyMarks = copyMarksOf(copyFormat);
    this.#expectsHeader = copyFormat.header || copyFormat.format === 'binary';
  }

  /** The bytes are the caller's again once `batch` was null. */
  push(copyBytes: Buffer): void {
    const heldBytes = this.#windowLength - this.#rowOffset;
    if (heldBytes === 0) {
      this.#copyWindow = copyBytes;
      this.#windowLength = copyBytes.length;
      this.#rowOffset = 0;
      return;
    }
    // A row that grows is moved as often as its window doubles.
    if (this.#windowLength + copyBytes.length > this.#copyWindow.length) {
      const largerWindow = Buffer.allocUnsafeSlow(
        Math.max(heldBytes + copyBytes.length, this.#rowOffset === 0 ? 2 * heldBytes : 0),
      );
      this.#copyWindow.copy(largerWindow, 0, this.#rowOffset, this.#windowLength);
      this.#copyWindow = largerWindow;
      this.#windowLength = heldBytes;
      this.#rowOffset = 0;
    }
    copyBytes.copy(this.#copyWindow, this.#windowLength);
    this.#windowLength += copyBytes.length;
  }

  /** The next full batch, and at the end the rest; null where more bytes are needed. Throws for a malformed row. */
  batch(isCopyEnd: boolean): RowBatch | null {
    if (isCopyEnd && !this.#isCopyEnded && this.#copyFormat.format !== 'binary' && this.#rowOffset < this.#windowLength) {
      if (this.#copyWindow[this.#windowLength - 1] !== 0x0a) this.push(Buffer.from('\n'));
    }
    while (!this.#isCopyEnded && this.#readRow()) if (this.#copyBatch.isFull) return this.#copyBatch.take();
    if (!isCopyEnd) {
      this.#checkRowBytes(this.#windowLength - this.#rowOffset);
      if (this.#rowOffset === 0 && this.#copyWindow.length > this.#windowLength) return null;
      // The bytes may be the connection's, which goes on to use them.
      this.#copyWindow = Buffer.from(this.#copyWindow.subarray(this.#rowOffset, this.#windowLength));
      this.#windowLength = this.#copyWindow.length;
      this.#rowOffset = 0;
      return null;
    }
    if (this.#copyFormat.format === 'binary' && !this.#isCopyEnded)
      throw new ServiceError('REL_INVALID', 'the binary data ends before its trailer', { reason: 'copy-form' });
    if (!this.#isCopyEnded && this.#rowOffset < this.#windowLength)
      throw new ServiceError('REL_INVALID', `${this.#copyBatch.rowName}: the data ends within quotes`, { reason: 'copy-form' });
    return this.#copyBatch.isEmpty ? null : this.#copyBatch.take();
  }

  /** False: more bytes are needed. */
  #readRow(): boolean {
    if (this.#copyFormat.format === 'binary') return this.#expectsHeader ? this.#readBinaryHeader() : this.#readBinaryRow();
    const rowStart = this.#rowOffset;
    const copyWindow = this.#copyWindow;
    const rowEnd = this.#copyFormat.format === 'csv' ? this.#scanCsvFields() : this.#scanTextFields();
    if (rowEnd < 0) return false;
    const { high: highBits } = this.#rowScan;
    this.#rowScan = rowBeginning;
    // The line that ends the data of clients that speak as files do.
    if (
      this.#fieldCount === 1 &&
      this.#copyFieldEnds[0] === 2 &&
      copyWindow[rowStart] === 0x5c &&
      copyWindow[rowStart + 1] === 0x2e
    ) {
      this.#isCopyEnded = true;
      this.#rowOffset = this.#windowLength;
      return true;
    }
    if (this.#expectsHeader) this.#expectsHeader = false;
    else {
      this.#checkRowBytes(rowEnd - rowStart);
      if (highBits > 0x7f && !isUtf8(copyWindow.subarray(rowStart, rowEnd)))
        throw new ServiceError('REL_INVALID', `${this.#copyBatch.rowName} is not UTF-8`, { reason: 'not-utf8' });
      this.#checkFieldCount(this.#fieldCount);
      for (let i = 0; i < this.#copyBatch.columnCount; i++) this.#appendTextField(i);
      this.#copyBatch.endRow(rowEnd - rowStart);
    }
    this.#rowOffset = rowEnd;
    this.#fieldCount = this.#copyFieldStarts.length = this.#copyFieldEnds.length = this.#copyFieldForms.length = 0;
    return true;
  }

  #checkRowBytes(rowBytes: number): void {
    if (rowBytes > rowBytesMax)
      throw new ServiceError('REL_TOO_LARGE', `${this.#copyBatch.rowName}: a row is over ${rowBytesMax} bytes`);
  }

  #checkFieldCount(fieldCount: number): void {
    if (fieldCount === this.#copyBatch.columnCount) return;
    throw new ServiceError(
      'REL_INVALID',
      `${this.#copyBatch.rowName} has ${fieldCount} fields for ${this.#copyBatch.columnCount} columns`,
      {
        reason: 'copy-form',
      },
    );
  }

  /** Fields without a column are counted only. */
  #addField(fieldStart: number, fieldEnd: number, fieldForm: FieldForm): void {
    if (this.#fieldCount++ >= this.#copyBatch.columnCount) return;
    this.#copyFieldStarts.push(fieldStart);
    this.#copyFieldEnds.push(fieldEnd);
    this.#copyFieldForms.push(fieldForm);
  }

  #isNullField(fieldStart: number, fieldEnd: number): boolean {
    const { nullText } = this.#copyMarks;
    return (
      fieldEnd - fieldStart === nullText.length &&
      this.#copyWindow.compare(nullText, 0, nullText.length, fieldStart, fieldEnd) === 0
    );
  }

  /** Fields between delimiters, with escapes by backslashes. Where the line ends; below 0: it is not whole, and is gone on with. */
  #scanTextFields(): number {
    const copyWindow = this.#copyWindow;
    const windowLength = this.#windowLength;
    const { delimiter: delimiterByte } = this.#copyMarks;
    const rowStart = this.#rowOffset;
    let { form: fieldForm, high: highBits } = this.#rowScan;
    let fieldStart = rowStart + this.#rowScan.start;
    let textOffset = rowStart + this.#rowScan.next;
    for (; textOffset < windowLength; textOffset++) {
      const copyByte = copyWindow[textOffset]!;
      highBits |= copyByte;
      if (copyByte === 0x5c) {
        if (textOffset + 1 === windowLength) break;
        fieldForm = fieldForms.marked;
        highBits |= copyWindow[++textOffset]!;
        continue;
      }
      if (copyByte !== delimiterByte && copyByte !== 0x0a) continue;
      const isRowEnd = copyByte === 0x0a;
      const hasCarriageReturn =
        isRowEnd &&
        textOffset > fieldStart &&
        copyWindow[textOffset - 1] === 0x0d &&
        !(fieldForm === fieldForms.marked && copyWindow[textOffset - 2] === 0x5c);
      this.#addField(fieldStart - rowStart, (hasCarriageReturn ? textOffset - 1 : textOffset) - rowStart, fieldForm);
      fieldForm = fieldForms.plain;
      fieldStart = textOffset + 1;
      if (isRowEnd) {
        this.#rowScan = { ...rowBeginning, high: highBits };
        return fieldStart;
      }
    }
    this.#rowScan = {
      next: textOffset - rowStart,
      start: fieldStart - rowStart,
      from: 0,
      form: fieldForm,
      isWithin: false,
      high: highBits,
    };
    return -1;
  }

  /** Fields of RFC 4180, with marks of one's own. Where the record ends; below 0: it is not whole, and is gone on with. */
  #scanCsvFields(): number {
    const copyWindow = this.#copyWindow;
    const windowLength = this.#windowLength;
    const { delimiter: delimiterByte, quote: quoteByte, escape: escapeByte } = this.#copyMarks;
    const rowStart = this.#rowOffset;
    let { form: fieldForm, isWithin: isWithinQuotes, high: highBits } = this.#rowScan;
    let fieldStart = rowStart + this.#rowScan.start;
    /** Resumes behind the quotes of the field. */
    let quoteEnd = rowStart + this.#rowScan.from;
    let csvOffset = rowStart + this.#rowScan.next;
    for (; csvOffset < windowLength; csvOffset++) {
      const csvByte = copyWindow[csvOffset]!;
      highBits |= csvByte;
      if (isWithinQuotes) {
        if (csvByte === escapeByte) {
          // The next byte decides what this one means.
          if (csvOffset + 1 === windowLength) break;
          if (copyWindow[csvOffset + 1] === quoteByte || copyWindow[csvOffset + 1] === escapeByte) {
            fieldForm = fieldForms.marked;
            csvOffset++;
            continue;
          }
        }
        if (csvByte === quoteByte) {
          isWithinQuotes = false;
          quoteEnd = csvOffset + 1;
        }
      } else if (csvByte === quoteByte) {
        fieldForm = csvOffset === fieldStart ? fieldForms.quoted : fieldForms.marked;
        isWithinQuotes = true;
      } else if (csvByte === delimiterByte || csvByte === 0x0a) {
        const isRowEnd = csvByte === 0x0a;
        const fieldEnd = isRowEnd && csvOffset > quoteEnd && copyWindow[csvOffset - 1] === 0x0d ? csvOffset - 1 : csvOffset;
        this.#addField(
          fieldStart - rowStart,
          fieldEnd - rowStart,
          fieldForm === fieldForms.quoted && quoteEnd < fieldEnd ? fieldForms.marked : fieldForm,
        );
        fieldForm = fieldForms.plain;
        fieldStart = quoteEnd = csvOffset + 1;
        if (isRowEnd) {
          this.#rowScan = { ...rowBeginning, high: highBits };
          return fieldStart;
        }
      }
    }
    this.#rowScan = {
      next: csvOffset - rowStart,
      start: fieldStart - rowStart,
      from: quoteEnd - rowStart,
      form: fieldForm,
      isWithin: isWithinQuotes,
      high: highBits,
    };
    return -1;
  }

  #unescapeField(rawField: Buffer): Buffer {
    const unescapedField = Buffer.allocUnsafe(rawField.length);
    let unescapedLength = 0;
    for (let i = 0; i < rawField.length; i++) {
      if (rawField[i] !== 0x5c || i + 1 === rawField.length) {
        unescapedField[unescapedLength++] = rawField[i]!;
        continue;
      }
      const escapedByte = rawField[++i]!;
      const isHexEscape = escapedByte === 0x78;
      const escapeBase = isHexEscape ? 16 : 8;
      let digitOffset = isHexEscape ? i + 1 : i;
      let escapeValue = -1;
      for (
        const digitsEnd = Math.min(rawField.length, digitOffset + (isHexEscape ? 2 : 3));
        digitOffset < digitsEnd && digitValues[rawField[digitOffset]!]! < escapeBase;
        digitOffset++
      )
        escapeValue = Math.max(0, escapeValue) * escapeBase + digitValues[rawField[digitOffset]!]!;
      if (escapeValue < 0) unescapedField[unescapedLength++] = escapedLetters[escapedByte]!;
      else {
        unescapedField[unescapedLength++] = escapeValue;
        i = digitOffset - 1;
      }
    }
    const fieldText = unescapedField.subarray(0, unescapedLength);
    if (!isUtf8(fieldText))
      throw new ServiceError('REL_INVALID', `${this.#copyBatch.rowName} is not UTF-8`, { reason: 'not-utf8' });
    return fieldText;
  }

  #unquoteField(rawField: Buffer): Buffer {
    const unquotedField = Buffer.allocUnsafe(rawField.length);
    const { quote: quoteByte, escape: escapeByte } = this.#copyMarks;
    let unquotedLength = 0;
    let isWithinQuotes = false;
    for (let i = 0; i < rawField.length; i++) {
      const csvByte = rawField[i]!;
      if (isWithinQuotes && csvByte === escapeByte && (rawField[i + 1] === quoteByte || rawField[i + 1] === escapeByte))
        unquotedField[unquotedLength++] = rawField[++i]!;
      else if (csvByte === quoteByte) isWithinQuotes = !isWithinQuotes;
      else unquotedField[unquotedLength++] = csvByte;
    }
    return unquotedField.subarray(0, unquotedLength);
  }

  #readBinaryHeader(): boolean {
    const headerWindow = this.#copyWindow.subarray(this.#rowOffset, this.#windowLength);
    if (headerWindow.length < 19) return false;
    if (!headerWindow.subarray(0, 11).equals(copySignature))
      throw new ServiceError('REL_INVALID', 'this is not binary COPY data', { reason: 'copy-form' });
    const headerBytes = 19 + headerWindow.readInt32BE(15);
    if (headerWindow.readInt32BE(11) !== 0 || headerBytes < 19 || headerBytes > 4_096)
      throw new ServiceError('REL_INVALID', 'binary COPY data has flags that are not known here', { reason: 'copy-form' });
    if (headerWindow.length < headerBytes) return false;
    this.#rowOffset += headerBytes;
    this.#expectsHeader = false;
    return true;
  }

  #readBinaryRow(): boolean {
    const copyWindow = this.#copyWindow;
    const windowLength = this.#windowLength;
    let fieldOffset = this.#rowOffset;
    if (fieldOffset + 2 > windowLength) return false;
    const fieldCount = copyWindow.readInt16BE(fieldOffset);
    fieldOffset += 2;
    if (fieldCount === -1) {
      this.#isCopyEnded = true;
      this.#rowOffset = windowLength;
      return true;
    }
    this.#checkFieldCount(fieldCount);
    const fieldStarts: number[] = [];
    for (let i = 0; i < fieldCount; i++) {
      if (fieldOffset + 4 > windowLength) return false;
      const fieldBytes = copyWindow.readInt32BE(fieldOffset);
      if (fieldBytes < -1 || fieldBytes > rowBytesMax)
        throw new ServiceError('REL_INVALID', `${this.#copyBatch.rowName} has a field of ${fieldBytes} bytes`, {
          reason: 'copy-form',
        });
      fieldStarts.push(fieldOffset);
      fieldOffset += 4 + Math.max(0, fieldBytes);
    }
    if (fieldOffset > windowLength) return false;
    for (let i = 0; i < fieldCount; i++) {
      const fieldStart = fieldStarts[i]!;
      const fieldBytes = copyWindow.readInt32BE(fieldStart);
      const fieldValue = fieldBytes < 0 ? null : copyWindow.subarray(fieldStart + 4, fieldStart + 4 + fieldBytes);
      this.#copyBatch.appendValue(i, fieldValue, 1);
    }
    this.#copyBatch.endRow(fieldOffset - this.#rowOffset);
    this.#rowOffset = fieldOffset;
    return true;
  }

  #appendTextField(i: number): void {
    const fieldForm = this.#copyFieldForms[i]!;
    const fieldStart = this.#rowOffset + this.#copyFieldStarts[i]!;
    const fieldEnd = this.#rowOffset + this.#copyFieldEnds[i]!;
    if ((fieldForm === fieldForms.plain || this.#copyMarks.quote < 0) && this.#isNullField(fieldStart, fieldEnd))
      return this.#copyBatch.appendNull(i);
    if (fieldForm === fieldForms.marked) {
      const rawField = this.#copyWindow.subarray(fieldStart, fieldEnd);
      const fieldText = this.#copyMarks.quote < 0 ? this.#unescapeField(rawField) : this.#unquoteField(rawField);
      this.#copyBatch.appendText(i, fieldText, 0, fieldText.length);
    } else if (fieldForm === fieldForms.quoted) this.#copyBatch.appendText(i, this.#copyWindow, fieldStart + 1, fieldEnd - 1);
    else this.#copyBatch.appendText(i, this.#copyWindow, fieldStart, fieldEnd);
  }
}

/** The bytes that a format gives a meaning. */
interface CopyMarks {
  readonly nullText: Buffer;
  readonly delimiter: number;
  /** Below 0: the format has no quotes. */
  readonly quote: number;
  readonly escape: number;
}

function copyMarksOf({ format, nullText, delimiter, quote, escape }: CopyFormat): CopyMarks {
  return {
    nullText: Buffer.from(nullText),
    delimiter: delimiter.charCodeAt(0),
    quote: format === 'csv' ? quote.charCodeAt(0) : -1,
    escape: format === 'csv' ? escape.charCodeAt(0) : -1,
  };
}

/** A field as it is written: as it is, within quotes, or with marks that stand for something else. */
const fieldForms = { plain: 0, quoted: 1, marked: 2 } as const;
type FieldForm = (typeof fieldForms)[keyof typeof fieldForms];

/** How far a row has been looked at, from its begin. */
interface RowScan {
  readonly next: number;
  /** Locates the incomplete field, and the bytes behind its quotes. */
  readonly start: number;
  readonly from: number;
  readonly form: FieldForm;
  readonly isWithin: boolean;
  /** All bytes of the row, or'ed: most rows are pure ASCII. */
  readonly high: number;
}
const rowBeginning: RowScan = { next: 0, start: 0, from: 0, form: fieldForms.plain, isWithin: false, high: 0 };

/** The byte that each letter behind a backslash stands for. */
const escapedLetters = Uint8Array.from({ length: 256 }, (_, byte) => byte);
for (const [i, letter] of Buffer.from('btnvfr').entries()) escapedLetters[letter] = 8 + i;

const digitValues = new Uint8Array(256).fill(255);
for (const digitLetters of ['0123456789abcdef', '0123456789ABCDEF'])
  for (const [i, digit] of Buffer.from(digitLetters).entries()) digitValues[digit] = i;
