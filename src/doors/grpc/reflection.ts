/**
 * Definitions for gRPC reflection. The loader names the entries of a map after its field; compilers demand `NameEntry`, and clients that
 * check it, Python's among them, refuse the whole file otherwise. Source: descriptor.proto.
 */
import type { PackageDefinition } from '@grpc/proto-loader';
import { bytesField, ProtobufMessage, protobufMessage, textField, varintField } from './protobuf.ts';

/** Numbers of the members that are looked at. */
const fileMessages = 4;
const members = { name: 1, field: 2, nested: 3, options: 7 } as const;
const fieldType = 6;
const mapEntry = 7;

export function reflectable(loaded: PackageDefinition): PackageDefinition {
  // All definitions of a file hold the same bytes of it.
  const known = new Map<Buffer, Buffer>();
  const showFile = (file: Buffer): Buffer => {
    let fileDescriptor = known.get(file);
    if (fileDescriptor === undefined) known.set(file, (fileDescriptor = fileOf(file)));
    return fileDescriptor;
  };
  return Object.fromEntries(
    Object.entries(loaded).map(([name, definition]) => {
      if (!isDescribed(definition)) return [name, definition];
      return [name, { ...definition, fileDescriptorProtos: definition.fileDescriptorProtos.map(showFile) }];
    }),
  );
}

const fileOf = (file: Uint8Array): Buffer =>
  rewritten(file, (number, value) => bytesField(number, number === fileMessages ? typeOf(value) : value));

const isDescribed = (definition: object): definition is { readonly fileDescriptorProtos: Buffer[] } & PackageDefinition[string] =>
  'fileDescriptorProtos' in definition;

function typeOf(type: Uint8Array): Buffer {
  const entries = new Set<string>();
  for (const nested of new ProtobufMessage(type).all(members.nested)) {
    const read = new ProtobufMessage(nested);
    if (new ProtobufMessage(read.bytes(members.options) ?? new Uint8Array(0)).number(mapEntry) === 1n)
      entries.add(read.text(members.name)!);
  }
  return rewritten(type, (number, value) => {
    if (number === members.field)
      return bytesField(
        number,
        rewritten(value, (of, text) => (of === fieldType ? nameField(of, text, entries) : bytesField(of, text))),
      );
    if (number !== members.nested) return bytesField(number, value);
    const name = new ProtobufMessage(value).text(members.name)!;
    const nested = typeOf(value);
    return bytesField(
      number,
      entries.has(name)
        ? rewritten(nested, (of, text) => (of === members.name ? nameField(of, text, entries) : bytesField(of, text)))
        : nested,
    );
  });
}

/** A name, with what is demanded behind it where it is one of the entries'. */
function nameField(number: number, bytes: Uint8Array, entries: ReadonlySet<string>): Buffer {
  const text = Buffer.from(bytes).toString();
  if (!entries.has(text)) return bytesField(number, bytes);
  return textField(number, `${text.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())}Entry`);
}

/** The message with its fields of bytes as they are given back, and its numbers as they were. */
function rewritten(bytes: Uint8Array, field: (number: number, value: Uint8Array) => Buffer): Buffer {
  return protobufMessage(
    ...[...new ProtobufMessage(bytes).fields].flatMap(([number, values]) =>
      values.map((value) => (typeof value === 'bigint' ? varintField(number, value) : field(number, value))),
    ),
  );
}
