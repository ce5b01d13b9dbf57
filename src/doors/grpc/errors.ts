/**
 * Errors as gRPC tells them: a code, a sentence, and details that a program reads: google.rpc.ErrorInfo with the reason and the
 * correlation id, RetryInfo where trying again later can help. Source: google.rpc.Status and error_details.proto.
 */
import { Metadata, type StatusObject } from '@grpc/grpc-js';
import type { ServiceError } from '../../errors.ts';
import { errorCodesOf } from '../error-codes.ts';
import { bytesField, type Fields, protobufMessage, textField, varintField } from './protobuf.ts';

const errorDomain = 'annals';
const rpcTypeUrl = 'type.googleapis.com/google.rpc.';

export function statusOf(rpcError: ServiceError, correlationId: string): StatusObject {
  const statusCode = errorCodesOf(rpcError.code, rpcError.facts.stale).grpc;
  const { retryAfterSecs } = rpcError.facts;
  const statusDetails = [
    anyMessage('ErrorInfo', [
      textField(1, rpcError.code),
      textField(2, errorDomain),
      metadataMember(3, 'correlation_id', correlationId),
    ]),
    ...(retryAfterSecs === undefined
      ? []
      : [anyMessage('RetryInfo', [bytesField(1, varintField(1, Math.ceil(retryAfterSecs)))])]),
  ];
  const statusMetadata = new Metadata();
  statusMetadata.set(
    'grpc-status-details-bin',
    protobufMessage(
      varintField(1, statusCode),
      textField(2, rpcError.message),
      ...statusDetails.map((statusDetail) => bytesField(3, statusDetail)),
    ),
  );
  return { code: statusCode, details: rpcError.message, metadata: statusMetadata };
}

function anyMessage(detailName: string, detailFields: Fields): Buffer {
  return protobufMessage(textField(1, rpcTypeUrl + detailName), bytesField(2, protobufMessage(...detailFields)));
}

function metadataMember(fieldNumber: number, memberKey: string, memberValue: string): Buffer {
  return bytesField(fieldNumber, protobufMessage(textField(1, memberKey), textField(2, memberValue)));
}
