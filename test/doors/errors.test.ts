/** One error, eight protocols: the golden table of what callers of each door will see. */
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { errorDocument } from '../../src/doors/document/errors.ts';
import { errorText, respRefusals as kvRefusals } from '../../src/doors/kv/errors.ts';
import { errorCodes, errorCodesOf } from '../../src/doors/error-codes.ts';
import { operationOf } from '../../src/doors/object/operations.ts';
import { wireError } from '../../src/doors/object/errors.ts';
import { requestOf } from '../../src/doors/object/request-path.ts';
import { type ErrorCode, errorTable, type ErrorKind, ServiceError } from '../../src/errors.ts';

const kinds = Object.keys(errorCodes) as ErrorKind[];

describe('error codes of every protocol', () => {
  test('the table of errors is as it was agreed', async () => {
    const lines = Object.entries(errorTable).map(([code, { kind }]) =>
      [code, kind, ...Object.values(errorCodesOf(code as ErrorCode))].join(' | '),
    );
    const head = ['code', 'kind', ...Object.keys(errorCodes.internal)].join(' | ');
    await expect(`${[head, ...lines].join('\n')}\n`).toMatchFileSnapshot('./errors.golden.txt');
  });

  test('the HTTP status of a code is the status of its kind', () => {
    for (const [code, row] of Object.entries(errorTable)) expect([code, errorCodes[row.kind].http]).toEqual([code, row.status]);
  });

  test('SQLSTATEs have five characters of the standard’s alphabet', () => {
    for (const code of Object.keys(errorTable) as ErrorCode[])
      for (const stale of [false, true]) expect(errorCodesOf(code, stale).sqlstate).toMatch(/^[0-9A-Z]{5}$/);
  });

  test('gRPC codes are error codes of google.rpc.Code', () => {
    for (const kind of kinds) {
      expect(errorCodes[kind].grpc).toBeGreaterThanOrEqual(1);
      expect(errorCodes[kind].grpc).toBeLessThanOrEqual(16);
    }
  });

  test('words of text protocols are one word', () => {
    for (const kind of kinds) {
      const { resp, bolt, object } = errorCodes[kind];
      for (const word of [resp, bolt, object]) expect(word).toMatch(/^[A-Za-z.]+$/);
    }
  });

  test('clients of Redis read the word, drivers of MongoDB the number and its name', () => {
    for (const [code, { kind }] of Object.entries(errorTable) as [ErrorCode, { kind: ErrorKind }][]) {
      const error = new ServiceError(code, 'why');
      const { resp, document } = errorCodesOf(code);
      expect(errorText(error)).toBe(`${resp} why (${code})`);
      expect([kind, errorDocument(error)]).toMatchObject([kind, { errmsg: `why (${code})`, code: document }]);
      expect(errorDocument(error)['codeName']).toMatch(/^[A-Z]\w+$/);
    }
    expect(errorDocument(new ServiceError('REL_CONFLICT', 'why', { stale: true }))).toMatchObject({ codeName: 'WriteConflict' });
    expect(errorText(kvRefusals.wrongPass())).toMatch(/^WRONGPASS /);
    expect(errorText(kvRefusals.wrongType())).toMatch(/^WRONGTYPE /);
  });

  test('only rate-limit, quota and unavailability say that trying again helps', () => {
    const retryable = Object.entries(errorTable).filter(([, row]) => row.retryable);
    expect(new Set(retryable.map(([, row]) => row.kind))).toEqual(new Set(['too_many_requests', 'unavailable']));
  });

  test('the object door refuses by the codes and statuses that S3 has', () => {
    const of = (method: string, url: string, ...rawHeaders: string[]): string => {
      const headers: Record<string, string> = {};
      for (let i = 0; i < rawHeaders.length; i += 2) headers[rawHeaders[i]!] = rawHeaders[i + 1]!;
      try {
        operationOf(requestOf({ method, url, rawHeaders, headers } as unknown as IncomingMessage));
        return 'taken';
      } catch (error) {
        const { code, status } = wireError(error as ServiceError);
        return `${status} ${code}`;
      }
    };
    for (const feature of ['acl', 'cors', 'lifecycle', 'policy', 'versions', 'encryption', 'website'])
      for (const method of ['GET', 'PUT', 'DELETE']) expect(of(method, `/bucket?${feature}`)).toBe('501 NotImplemented');
    // Clients ask whether there are any.
    for (const feature of ['tagging', 'versioning'])
      for (const method of ['GET', 'PUT', 'DELETE'])
        expect(of(method, `/bucket?${feature}`)).toBe(method === 'GET' ? 'taken' : '501 NotImplemented');
    expect(of('GET', '/bucket/key?torrent')).toBe('501 NotImplemented');
    expect(of('PUT', '/bucket/key?uploadId=x&partNumber=1', 'x-amz-copy-source', '/a/b')).toBe('taken');
    expect(of('PATCH', '/bucket/key')).toBe('405 MethodNotAllowed');
    expect(of('POST', '/bucket')).toBe('405 MethodNotAllowed');
    expect(of('PUT', '/types/T/k.json')).toBe('403 AccessDenied');
    expect(of('GET', '/%ff')).toBe('400 InvalidURI');
    expect(of('GET', '/b?a=1&a=2')).toBe('400 InvalidArgument');
    expect(of('GET', '/b', 'x-organization-id', 'a', 'x-organization-id', 'b')).toBe('400 InvalidArgument');
    for (const code of Object.keys(errorTable) as ErrorCode[]) {
      const { code: word, status } = wireError(new ServiceError(code, 'x'));
      expect([word, status]).toEqual([expect.stringMatching(/^[A-Za-z]+$/), expect.any(Number)]);
      // A client takes 401 for a proxy's: S3 has none.
      expect(status).not.toBe(401);
    }
  });
});
