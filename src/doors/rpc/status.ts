/**
 * Errors as gRPC tells them: a code, a sentence, and details that a program reads: google.rpc.ErrorInfo with the reason and the
 * correlation id, RetryInfo where trying again later can help. Source: google.rpc.Status and error_details.proto.
 */
import { Metadata, type StatusObject } from '@grpc/grpc-js';
import type { ServiceError } from '../../errors.ts';
import { errorCodesOf } from '../error-codes.ts';

const domain = 'annals';
const typeUrl = 'type.googleapis.com/google.rpc.';

export function statusOf(error: ServiceError, correlationId: string): StatusObject {
  const code = errorCodesOf(error.code, error.facts.stale).grpc;
  const { retryAfterSecs } = error.facts;
  const details = [
    any('ErrorInfo', [text(1, error.code), text(2, domain), member(3, 'correlation_id', correlationId)]),
    ...(retryAfterSecs === undefined ? [] : [any('RetryInfo', [field(1, varintField(1, Math.ceil(retryAfterSecs)))])]),
  ];
  const metadata = new Metadata();
  metadata.set(
    'grpc-status-details-bin',
    Buffer.concat([varintField(1, code), text(2, error.message), ...details.map((each) => field(3, each))]),
  );
  return { code, details: error.message, metadata };
}

function any(name: string, fields: readonly Buffer[]): Buffer {
  return Buffer.concat([text(1, typeUrl + name), field(2, Buffer.concat(fields))]);
}

function member(number: number, key: string, value: string): Buffer {
  return field(number, Buffer.concat([text(1, key), text(2, value)]));
}

const text = (number: number, value: string): Buffer => field(number, Buffer.from(value));

/** A field of bytes, behind their length. */
function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

const varintField = (number: number, value: number): Buffer => Buffer.concat([varint(number << 3), varint(value)]);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}
