/**
 * Definitions for gRPC reflection. The loader names the entries of a map after its field; compilers demand `NameEntry`, and clients that
 * check it, Python's among them, refuse the whole file otherwise. Source: descriptor.proto.
 */
import type { PackageDefinition } from '@grpc/proto-loader';
import { bytesField, ProtobufMessage, protobufMessage, textField, varintField } from './protobuf.ts';

/** Numbers of the members that are looked at. */
const fileMessagesField = 4;
const messageMembers = { name: 1, field: 2, nested: 3, options: 7 } as const;
const fieldTypeMember = 6;
const mapEntryOption = 7;

export function reflectable(loadedPackage: PackageDefinition): PackageDefinition {
  // All definitions of a file hold the same bytes of it.
  const reflectedFiles = new Map<Buffer, Buffer>();
  const reflectFile = (descriptorFile: Buffer): Buffer => {
    let fileDescriptor = reflectedFiles.get(descriptorFile);
    if (fileDescriptor === undefined) reflectedFiles.set(descriptorFile, (fileDescriptor = reflectedFileOf(descriptorFile)));
    return fileDescriptor;
  };
  return Object.fromEntries(
    Object.entries(loadedPackage).map(([definitionName, protoDefinition]) => {
      if (!isDescribedService(protoDefinition)) return [definitionName, protoDefinition];
      return [
        definitionName,
        { ...protoDefinition, fileDescriptorProtos: protoDefinition.fileDescriptorProtos.map(reflectFile) },
      ];
    }),
  );
}

const reflectedFileOf = (descriptorFile: Uint8Array): Buffer =>
  rewriteProto(descriptorFile, (fieldNumber, fieldValue) =>
    bytesField(fieldNumber, fieldNumber === fileMessagesField ? reflectedTypeOf(fieldValue) : fieldValue),
  );

const isDescribedService = (
  protoDefinition: object,
): protoDefinition is { readonly fileDescriptorProtos: Buffer[] } & PackageDefinition[string] =>
  'fileDescriptorProtos' in protoDefinition;

function reflectedTypeOf(messageType: Uint8Array): Buffer {
  const mapEntryNames = new Set<string>();
  for (const nestedType of new ProtobufMessage(messageType).all(messageMembers.nested)) {
    const nestedMessage = new ProtobufMessage(nestedType);
    if (new ProtobufMessage(nestedMessage.bytes(messageMembers.options) ?? new Uint8Array(0)).number(mapEntryOption) === 1n)
      mapEntryNames.add(nestedMessage.text(messageMembers.name)!);
  }
  return rewriteProto(messageType, (fieldNumber, fieldValue) => {
    if (fieldNumber === messageMembers.field)
      return bytesField(
        fieldNumber,
        rewriteProto(fieldValue, (innerNumber, innerValue) =>
          innerNumber === fieldTypeMember
            ? mapEntryNameField(innerNumber, innerValue, mapEntryNames)
            : bytesField(innerNumber, innerValue),
        ),
      );
    if (fieldNumber !== messageMembers.nested) return bytesField(fieldNumber, fieldValue);
    const nestedName = new ProtobufMessage(fieldValue).text(messageMembers.name)!;
    const nested = reflectedTypeOf(fieldValue);
    return bytesField(
      fieldNumber,
      mapEntryNames.has(nestedName)
        ? rewriteProto(nested, (innerNumber, innerValue) =>
            innerNumber === messageMembers.name
              ? mapEntryNameField(innerNumber, innerValue, mapEntryNames)
              : bytesField(innerNumber, innerValue),
          )
        : nested,
    );
  });
}

/** A name, with what is demanded behind it where it is one of the entries'. */
function mapEntryNameField(fieldNumber: number, nameBytes: Uint8Array, mapEntryNames: ReadonlySet<string>): Buffer {
  const protoName = Buffer.from(nameBytes).toString();
  if (!mapEntryNames.has(protoName)) return bytesField(fieldNumber, nameBytes);
  return textField(fieldNumber, `${protoName.replaceAll(/_(.)/g, (_, upperLetter: string) => upperLetter.toUpperCase())}Entry`);
}

/** The message with its fields of bytes as they are given back, and its numbers as they were. */
function rewriteProto(protoBytes: Uint8Array, rewriteField: (fieldNumber: number, fieldValue: Uint8Array) => Buffer): Buffer {
  return protobufMessage(
    ...[...new ProtobufMessage(protoBytes).fields].flatMap(([fieldNumber, fieldValues]) =>
      fieldValues.map((fieldValue) =>
        typeof fieldValue === 'bigint' ? varintField(fieldNumber, fieldValue) : rewriteField(fieldNumber, fieldValue),
      ),
    ),
  );
}
