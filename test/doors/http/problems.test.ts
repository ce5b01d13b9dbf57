/** Specification, "Problem response": every error that reaches the door, as its caller sees it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ErrorCode, errorTable, ServiceError } from '../../../src/errors.ts';
import { RateLimiter } from '../../../src/governance/admission/rate-limit.ts';
import { DoorWorld, emptyAnswer } from './door-world.ts';

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let world: DoorWorld;
beforeAll(async () => {
  world = await new DoorWorld().open();
});
afterAll(() => world.close());
beforeEach(() => {
  world.records.length = 0;
  world.lines.length = 0;
  world.recordFailure = null;
  world.answer = async () => emptyAnswer;
});

const ask = () => world.call('POST', '/query', { sql: 'SELECT 1' });
const fail = (error: unknown): void => {
  world.answer = async () => {
    throw error;
  };
};

describe('a problem record', () => {
  test.each(Object.keys(errorTable) as ErrorCode[])('of %s', async (code) => {
    fail(new ServiceError(code, 'what happened'));
    const reply = await ask();
    const { status, kind, retryable } = errorTable[code];
    expect(reply.status).toBe(status);
    expect(reply.headers['content-type']).toBe('application/problem+json');
    expect(reply.json).toEqual({
      type: `urn:test:errors/${code}`,
      title: expect.stringMatching(/^[A-Z]/) as unknown,
      status,
      detail: code === 'REL_INTERNAL' ? 'internal error; the correlation id finds it in the log' : 'what happened',
      instance: '/query',
      correlation_id: expect.stringMatching(uuidV7) as unknown,
      ...(kind === 'too_many_requests' ? { retryable } : {}),
    });
  });

  test('has the correlation id of its access record', async () => {
    fail(new ServiceError('REL_PARSE', '1:1: no'));
    const reply = await ask();
    expect(world.records.map((record) => [record.request.correlationId, record.code])).toEqual([
      [reply.json['correlation_id'], 'REL_PARSE'],
    ]);
  });

  test('of a bug shows nothing of it; the log has it under the correlation id', async () => {
    const bug = new TypeError('secret cell 42');
    fail(bug);
    const reply = await ask();
    expect(reply.status).toBe(500);
    expect(reply.text).not.toContain('secret');
    expect(world.lines).toEqual([
      { event: 'internal error', correlationId: reply.json['correlation_id'], route: '/query', error: bug },
    ]);
  });

  test('names the route, not the key in its path', async () => {
    world.submit = async () => ({ accepted: 0 });
    const reply = await world.call('DELETE', '/types/Person/secret-key');
    world.submit = async () => ({});
    expect([reply.status, reply.json['instance'], reply.text.includes('secret')]).toEqual([404, '/types/:name/:id', false]);
  });

  test('of a quota says when to come back', async () => {
    fail(new ServiceError('REL_QUOTA', 'used up', { retryAfterSecs: 17 }));
    expect((await ask()).headers['retry-after']).toBe('17');
    fail(new ServiceError('REL_QUEUE_FULL', 'full'));
    expect((await ask()).headers['retry-after']).toBe('1');
  });

  test('replaces an answer whose record could not be written: no data leaves', async () => {
    world.recordFailure = new ServiceError('REL_UNAVAILABLE', 'not recorded');
    const reply = await ask();
    expect(reply.status).toBe(503);
    expect(reply.text).not.toContain('rows');
  });
});

describe('errors before a route runs', () => {
  test('an unknown route is 404', async () => {
    for (const path of ['/nothing', '/query/', '/Query', '/types/a/b/c', '//query', '/']) {
      const reply = await world.call('POST', path, '{}');
      expect([path, reply.status, reply.json['type']]).toEqual([path, 404, 'urn:test:errors/REL_NOT_FOUND']);
    }
  });

  test('a known route with another verb is 405 and says which it has', async () => {
    const cases = [
      ['GET', '/query', 'POST'],
      ['PUT', '/types/T', 'GET, HEAD'],
      ['PUT', '/types/T/1', 'DELETE, PATCH'],
      ['DELETE', '/health', 'GET, HEAD'],
      ['OPTIONS', '/memory/recall', 'GET, HEAD, POST'],
      ['DELETE', '/ingest', 'POST'],
    ] as const;
    for (const [method, path, allow] of cases) {
      const reply = await world.call(method, path);
      expect([method, path, reply.status, reply.headers['allow']]).toEqual([method, path, 405, allow]);
      expect(reply.json['type']).toBe('urn:test:errors/REL_METHOD');
    }
  });

  test('a path that is no URL is 400', async () => {
    const reply = await world.call('GET', '/types/%zz');
    expect([reply.status, reply.json['type']]).toEqual([400, 'urn:test:errors/REL_INVALID']);
  });

  test('a missing or mistyped field is named, its value is not', async () => {
    const missing = await world.call('POST', '/query', { q: 'canary-value' });
    expect([missing.status, missing.json['detail']]).toEqual([400, expect.stringMatching(/^sql: /)]);
    const mistyped = await world.call('POST', '/query', { sql: ['canary-value'] });
    expect([mistyped.status, mistyped.json['detail']]).toEqual([400, expect.stringMatching(/^sql: /)]);
    expect(missing.text + mistyped.text).not.toContain('canary');
  });

  test('what was refused before the gate is recorded once, with its code', async () => {
    await world.call('POST', '/query', { q: 1 });
    await world.call('POST', '/query', { sql: 'SELECT 1' }, { authorization: 'Bearer wrong' });
    expect(world.records.map((record) => [record.caller.principal, record.request.action, record.code])).toEqual([
      ['tester', 'query', 'REL_INVALID'],
      ['unauthenticated', 'query', 'REL_UNAUTHENTICATED'],
    ]);
  });

  test('strangers can’t fill the log: past a burst their refusals are not recorded', async () => {
    const replies = await Promise.all(
      Array.from({ length: 120 }, () => world.call('GET', '/status', undefined, { authorization: '' })),
    );
    expect(replies.every((reply) => reply.status === 401)).toBe(true);
    expect(world.records.length).toBeGreaterThan(10);
    expect(world.records.length).toBeLessThan(120);
  });
});

describe('rate limits', () => {
  test('a 429 says how many, how many are left and when to come back', async () => {
    const limited = await new DoorWorld().open({ readLimit: new RateLimiter(2) });
    const before = Math.floor(Date.now() / 1000);
    const replies = await Promise.all(Array.from({ length: 5 }, () => limited.call('POST', '/query', { sql: 'SELECT 1' })));
    const refused = replies.filter((reply) => reply.status === 429);
    expect(replies.filter((reply) => reply.status === 200).length).toBe(2);
    expect(refused.length).toBe(3);
    for (const reply of refused) {
      expect(reply.json).toMatchObject({ type: 'urn:test:errors/REL_RATE_LIMITED', retryable: true });
      expect(reply.headers).toMatchObject({ 'retry-after': '1', 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0' });
      const reset = Number(reply.headers['x-ratelimit-reset']);
      expect(reset).toBeGreaterThanOrEqual(before);
      expect(reset).toBeLessThanOrEqual(before + 5);
    }
    // Writes have a bucket of their own, probes none.
    expect((await limited.call('POST', '/types', { name: 'T' })).status).not.toBe(429);
    expect((await limited.call('GET', '/health')).status).toBe(200);
    await limited.close();
  });
});
