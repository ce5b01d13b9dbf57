/**
 * Errors as gRPC tells them: a code, a sentence, and details that a program reads: google.rpc.ErrorInfo with the reason and the
 * correlation id, RetryInfo where trying again later can help. Source: google.rpc.Status and error_details.proto.
 */
import { Metadata, type StatusObject } from '@grpc/grpc-js';
import type { ServiceError } from '../../errors.ts';
import { errorCodesOf } from '../error-codes.ts';
import { bytesField, type Fields, protobufMessage, textField, varintField } from './protobuf.ts';

const domain = 'annals';
const typeUrl = 'type.googleapis.com/google.rpc.';

export function statusOf(error: ServiceError, correlationId: string): StatusObject {
  const code = errorCodesOf(error.code, error.facts.stale).grpc;
  const { retryAfterSecs } = error.facts;
  const details = [
    any('ErrorInfo', [textField(1, error.code), textField(2, domain), member(3, 'correlation_id', correlationId)]),
    ...(retryAfterSecs === undefined ? [] : [any('RetryInfo', [bytesField(1, varintField(1, Math.ceil(retryAfterSecs)))])]),
  ];
  const metadata = new Metadata();
  metadata.set(
    'grpc-status-details-bin',
    protobufMessage(varintField(1, code), textField(2, error.message), ...details.map((each) => bytesField(3, each))),
  );
  return { code, details: error.message, metadata };
}

function any(name: string, fields: Fields): Buffer {
  return protobufMessage(textField(1, typeUrl + name), bytesField(2, protobufMessage(...fields)));
}

function member(number: number, key: string, value: string): Buffer {
  return bytesField(number, protobufMessage(textField(1, key), textField(2, value)));
}
