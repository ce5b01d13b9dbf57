/**
 * Fields of a body beside those that every body of its kind has:
 *
 *   count u8 | tag u8, size u32, bytes | …      tags rising
 *
 * A later release adds a field by a tag of its own, and needs no new version: a release that does not know a tag refuses the
 * body, since the field may change the meaning of the entry.
 */
import { ServiceError } from '../../errors.ts';
import { ByteReader, ByteWriter, malformedError } from './byte-stream.ts';

/** Writes the value of one field; null: the field is absent. */
export type FieldWriter = readonly [tag: number, write: ((target: ByteWriter) => void) | null];

export function writeFields(fieldWriters: readonly FieldWriter[], taggedTarget: ByteWriter): void {
  const presentFields = fieldWriters.flatMap(([fieldTag, writeField]) =>
    writeField === null ? [] : [{ tag: fieldTag, write: writeField }],
  );
  taggedTarget.u8(presentFields.length);
  const fieldBytes = new ByteWriter(256);
  for (const { tag, write } of presentFields) {
    fieldBytes.reset();
    write(fieldBytes);
    taggedTarget.u8(tag);
    taggedTarget.u32(fieldBytes.length);
    taggedTarget.raw(fieldBytes.view());
  }
}

/** Calls back for each field, with its bytes: all of them are to be read. False: the tag is not known. */
export function readFields(
  taggedSource: ByteReader,
  readTaggedField: (fieldTag: number, fieldReader: ByteReader) => boolean,
): void {
  let lastTag = 0;
  for (let fieldsLeft = taggedSource.u8(); fieldsLeft > 0; fieldsLeft--) {
    const fieldTag = taggedSource.u8();
    if (fieldTag <= lastTag) throw malformedError('fields out of order');
    lastTag = fieldTag;
    const fieldReader = new ByteReader(taggedSource.raw(taggedSource.u32()));
    if (!readTaggedField(fieldTag, fieldReader)) {
      throw new ServiceError(
        'REL_STORAGE',
        `a body has the field ${fieldTag}, which this release does not know: a later one wrote it`,
      );
    }
    fieldReader.end();
  }
}
