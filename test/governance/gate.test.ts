/** The gate: its order of steps, one access record on every way out, and nothing leaves that could not be recorded. */
import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { AssertionError, ServiceError } from '../../src/errors.ts';
import { LiteralDigest } from '../../src/governance/access-records/access-record-writer.ts';
import type { Invocation } from '../../src/governance/gate-contract.ts';
import { caller, putRows, refusalOf, registered, tokenRecord, World } from './world.ts';

const read = async (invocation: Invocation): Promise<string> => {
  invocation.snapshot();
  return 'answer';
};

const write = (invocation: Invocation) => invocation.submit(putRows());

describe('order of steps', () => {
  test('a write decides, appends and applies in one turn, then waits, then is recorded, then answers', async () => {
    const world = new World();
    const answer = world.invoke(caller(), 'ingest', async (invocation) => {
      const outcome = invocation.submit(putRows());
      world.steps.push('next statement of the same turn');
      await outcome;
      world.steps.push('acknowledged to the holder');
    });
    await answer;
    world.steps.push('answer');
    expect(world.steps).toEqual([
      'decide put-rows',
      'append genesis',
      'apply genesis',
      'next statement of the same turn',
      'ack genesis',
      'acknowledged to the holder',
      'append access',
      'apply access',
      'ack access',
      'answer',
    ]);
  });

  test('a refused write is neither decided nor appended', async () => {
    const world = new World();
    const refusal = await refusalOf(world.invoke(caller(), 'ingest', write, 'unheard-of'));
    expect(refusal.code).toBe('REL_PURPOSE_UNKNOWN');
    expect(world.steps).toEqual(['append access', 'apply access', 'ack access']);
  });

  test('purpose is judged before quota, quota before policy', async () => {
    const world = new World({ SERVICE_QUERY_QUOTA: 1 });
    await world.invoke(caller({ tenant: 'acme', path: 'acme' }), 'query', read);
    const foreign = caller({ tenant: 'acme', path: 'globex' });
    expect((await refusalOf(world.invoke(caller({ ...foreign, principal: 'eve' }), 'query', read))).code).toBe('REL_ACL');
    expect((await refusalOf(world.invoke(foreign, 'query', read))).code).toBe('REL_QUOTA');
    expect((await refusalOf(world.invoke(foreign, 'query', read, 'unheard-of'))).code).toBe('REL_PURPOSE_UNKNOWN');
  });

  test('the place at which a command was decided is the place at which it is appended', async () => {
    const world = new World();
    await world.invoke(caller(), 'ingest', async (invocation) => {
      const place = world.log.next();
      const written = invocation.submit(putRows());
      expect(world.log.lastOptions).toMatchObject({ at: place, sync: false });
      await written;
    });
  });

  test('a durable write is asked for by the caller or by the installation', async () => {
    const asked = new World();
    await asked.invoke(caller(), 'ingest', async (invocation) => {
      const written = invocation.submit(putRows(), { sync: true });
      expect(asked.log.lastOptions?.sync).toBe(true);
      await written;
    });
    const always = new World({ SERVICE_DURABILITY: 'sync' });
    await always.invoke(caller(), 'ingest', async (invocation) => {
      const written = invocation.submit(putRows());
      expect(always.log.lastOptions?.sync).toBe(true);
      await written;
    });
  });

  test('a write answers only once it is acknowledged', async () => {
    const world = new World();
    let release = (): void => undefined;
    world.log.hold = new Promise((resolve) => (release = resolve));
    let answered = false;
    const answer = world.invoke(caller(), 'ingest', write).then(() => (answered = true));
    await turns(5);
    expect(answered).toBe(false);
    release();
    await answer;
    expect(answered).toBe(true);
  });

  test('a command that changed nothing answers after the writes that it rests on', async () => {
    const world = new World();
    let release = (): void => undefined;
    world.log.hold = new Promise((resolve) => (release = resolve));
    const first = world.invoke(caller(), 'ingest', write);
    let answered = false;
    const second = world
      .invoke(caller(), 'ingest', (invocation) => invocation.submit(putRows('T', 0)))
      .then(() => (answered = true));
    await turns(5);
    expect(answered).toBe(false);
    world.log.hold = null;
    release();
    await Promise.all([first, second]);
    expect(answered).toBe(true);
  });

  test('a snapshot is of the basis of its own moment', async () => {
    const world = new World();
    const before = await world.invoke(caller(), 'query', async (invocation) => invocation.snapshot().instant);
    await world.invoke(caller(), 'ingest', write);
    const after = await world.invoke(caller(), 'query', async (invocation) => invocation.snapshot().instant);
    expect(after).toBe(before + 1n);
    expect(world.records.map((record) => record.basis)).toEqual([before, 0n, after]);
  });
});

describe('exactly one access record', () => {
  const ways: readonly [string, (invocation: Invocation) => Promise<unknown>, string, string | null][] = [
    ['an answered read', read, 'allow', null],
    ['an invocation that touched nothing', async () => 1, 'allow', null],
    ['a refusal', async () => Promise.reject(new ServiceError('REL_ACL', 'no')), 'deny', 'REL_ACL'],
    ['a used-up quota', async () => Promise.reject(new ServiceError('REL_QUOTA', 'no')), 'deny', 'REL_QUOTA'],
    ['a full store', async () => Promise.reject(new ServiceError('REL_STORAGE_CAP', 'no')), 'deny', 'REL_STORAGE_CAP'],
    ['bad input', async () => Promise.reject(new ServiceError('REL_PARSE', 'no')), 'error', 'REL_PARSE'],
    ['a time-out', async () => Promise.reject(new ServiceError('REL_TIMEOUT', 'late')), 'error', 'REL_TIMEOUT'],
    ['a caller that went away', async () => Promise.reject(new ServiceError('REL_CANCELLED', 'gone')), 'error', 'REL_CANCELLED'],
    ['a bug', async () => Promise.reject(new TypeError('x is not a function')), 'error', 'REL_INTERNAL'],
    ['a bug after a read', async (i) => (i.snapshot(), Promise.reject(new AssertionError('never'))), 'error', 'REL_INTERNAL'],
    ['something thrown that is no error', async () => Promise.reject(undefined), 'error', 'REL_INTERNAL'],
    [
      'a bug before the first await',
      (): Promise<never> => {
        throw new RangeError('synchronous');
      },
      'error',
      'REL_INTERNAL',
    ],
    ['an invocation used twice', async (i) => (i.snapshot(), i.snapshot()), 'allow', null],
  ];
  test.each(ways)('of %s', async (_, run, decision, code) => {
    const world = new World();
    const settled = await Promise.allSettled([world.invoke(caller(), 'query', run)]);
    expect(settled[0]!.status).toBe(decision === 'allow' ? 'fulfilled' : 'rejected');
    expect(world.records).toMatchObject([{ decision, code, principal: 'ada', action: 'query' }]);
  });

  test('of an invocation that two submits wrote with, counting the rows of both', async () => {
    const world = new World();
    await world.invoke(caller(), 'ingest', async (invocation) => {
      await invocation.submit(putRows('T', 2));
      await invocation.submit(putRows('T', 3));
    });
    expect(world.records).toMatchObject([{ decision: 'allow', rowCount: 5, objectType: 'T' }]);
  });

  test('of an invocation whose holder never waited for its write: the record comes after the acknowledgement', async () => {
    const world = new World();
    let release = (): void => undefined;
    world.log.hold = new Promise((resolve) => (release = resolve));
    const answer = world.invoke(caller(), 'ingest', async (invocation) => void invocation.submit(putRows()));
    await turns(5);
    expect(world.records).toEqual([]);
    release();
    await answer;
    expect(world.records).toMatchObject([{ rowCount: 1 }]);
  });

  test('each, for many at once, and those of one turn share an entry', async () => {
    const world = new World();
    await Promise.all(
      Array.from({ length: 600 }, (_, i) => world.invoke(caller({ principal: `p${i}` }), 'inspect', async () => i)),
    );
    expect(world.records.map((record) => record.principal).sort()).toEqual(Array.from({ length: 600 }, (_, i) => `p${i}`).sort());
    expect(world.log.entries.length).toBe(2);
  });

  test('what comes in by the next turn is recorded with it, and what comes later is not waited for', async () => {
    const tasks: (() => void)[] = [];
    const world = new World({}, { defer: (task) => tasks.push(task) });
    const answers: Promise<unknown>[] = [];
    for (const principal of ['first', 'second', 'third']) {
      answers.push(world.invoke(caller({ principal }), 'inspect', async () => principal));
      await turns(2);
      for (const task of tasks.splice(0)) task();
    }
    const recorded = world.log.entries.map(({ body }) => (body.kind === 'access' ? body.records.length : 0));
    expect(recorded).toEqual([2]);
    for (const task of tasks) task();
    expect(await Promise.all(answers)).toEqual(['first', 'second', 'third']);
    expect(world.log.entries.length).toBe(2);
  });

  test('says who, where, why, what and how much', async () => {
    const world = new World();
    const who = caller({ tenant: 'acme', path: 'acme/eu', door: 'kv' });
    world.clock.steadyMs = 10;
    await world.invoke(
      who,
      'query',
      async (invocation) => {
        invocation.describe({ objectType: 'Person', template: 'SELECT ?' });
        invocation.describe({ literals: ['secret'], rowCount: 7, costUnits: 3 });
        invocation.snapshot();
        world.clock.steadyMs = 14.5;
      },
      'fraud:aml',
    );
    expect(world.records).toEqual([
      {
        time: world.clock.wallNs,
        correlationId: 'c0',
        principal: 'ada',
        tenant: 'acme',
        path: 'acme/eu',
        door: 'kv',
        action: 'query',
        purpose: 'fraud:aml',
        objectType: 'Person',
        decision: 'allow',
        code: null,
        template: 'SELECT ?',
        literalDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
        basis: 1000n,
        rowCount: 7,
        costUnits: 3,
        durationMs: 4.5,
      },
    ]);
  });

  test('holds no literal, and its digest tells apart where one literal ends', async () => {
    const world = new World();
    for (const literals of [
      ['ab', 'c'],
      ['a', 'bc'],
      ['ab', 'c'],
    ]) {
      await world.invoke(caller(), 'query', async (invocation) => invocation.describe({ literals }));
    }
    const [first, second, third] = world.records.map((record) => record.literalDigest);
    expect(first).not.toBe(second);
    expect(first).toBe(third);
    const otherKey = new World({}, { digestKey: new Uint8Array(32).fill(8) });
    await otherKey.invoke(caller(), 'query', async (invocation) => invocation.describe({ literals: ['ab', 'c'] }));
    expect(otherKey.records[0]!.literalDigest).not.toBe(first);
  });
});

test('the digest of literals is HMAC-SHA-256 over their lengths and texts, of whatever size', () => {
  const key = new Uint8Array(32).fill(7);
  const digest = new LiteralDigest(key);
  const lists = [['a'], ['', ''], ['ünï€😀', "'"], ['x'.repeat(5000)], ['😀'.repeat(3000), 'b'], ['a']];
  // Longer than a piece, with characters of two halves across its end, and halves without the other one.
  lists.push(['b', `x${'😀'.repeat(70_000)}`, `${'\ud83d'.repeat(65_537)}😀`, 'c']);
  for (const literals of lists) {
    const text = literals.map((literal) => `${literal.length}:${literal}`).join('');
    expect(digest.digestOf(literals)).toBe(createHmac('sha256', key).update(text).digest('hex'));
  }
});

describe('texts that callers chose', () => {
  const poisoned = ['\ud800', `x${'y'.repeat(100_000)}`, '\u0000'];

  test.each(poisoned)('%#: neither spoil a record nor fail the neighbours of the same turn', async (text) => {
    const world = new World();
    const bad = world.invoke(caller(), 'query', async (invocation) => {
      invocation.describe({ template: text, objectType: text, purpose: text });
      invocation.snapshot();
    });
    const neighbour = world.invoke(caller(), 'query', read);
    expect((await refusalOf(bad)).code).toBe('REL_INVALID');
    expect(await neighbour).toBe('answer');
    for (const { template, objectType, purpose } of world.records) {
      for (const [kept, lengthMax] of [
        [template, 8193],
        // As many type names as one question may have.
        [objectType, 64 * 129 + 1],
        [purpose, 129],
      ] as const) {
        expect((kept ?? '').length).toBeLessThanOrEqual(lengthMax);
        expect(Buffer.from(kept ?? '').toString()).toBe(kept ?? '');
      }
    }
  });
});

describe('what could not be recorded does not leave', () => {
  test('a read is refused with REL_UNAVAILABLE when the log takes no record', async () => {
    const world = new World();
    world.log.refusal = new ServiceError('REL_UNAVAILABLE', 'disk full');
    expect((await refusalOf(world.invoke(caller(), 'query', read))).code).toBe('REL_UNAVAILABLE');
  });

  test('also when the record was placed but its bytes could not be written', async () => {
    const world = new World();
    world.log.writeFailure = new ServiceError('REL_STORAGE', 'EIO');
    expect((await refusalOf(world.invoke(caller(), 'query', read))).code).toBe('REL_UNAVAILABLE');
  });

  test('also when the invocation failed: its own error stays inside', async () => {
    const world = new World();
    world.log.refusal = new ServiceError('REL_UNAVAILABLE', 'disk full');
    const refusal = await refusalOf(
      world.invoke(caller(), 'query', async () => Promise.reject(new ServiceError('REL_ACL', 'no'))),
    );
    expect(refusal.code).toBe('REL_UNAVAILABLE');
  });

  test('a write that was appended and acknowledged is refused all the same', async () => {
    const world = new World();
    const refusal = await refusalOf(
      world.invoke(caller(), 'ingest', async (invocation) => {
        const outcome = await invocation.submit(putRows());
        world.log.refusal = new ServiceError('REL_UNAVAILABLE', 'disk full');
        return outcome;
      }),
    );
    expect(refusal.code).toBe('REL_UNAVAILABLE');
  });

  test('the answer waits until the record is handed over, not for its fsync', async () => {
    const world = new World();
    world.log.hold = new Promise(() => undefined);
    expect(await world.invoke(caller(), 'query', read)).toBe('answer');
    expect(world.steps).not.toContain('ack access');
  });
});

describe('bounds of an invocation', () => {
  test('it can be used neither to read nor to write after it ended', async () => {
    const world = new World();
    let kept: Invocation | undefined;
    await world.invoke(caller(), 'query', async (invocation) => void (kept = invocation));
    expect(() => kept!.snapshot()).toThrow(AssertionError);
    expect(() => kept!.audit()).toThrow(AssertionError);
    await expect(kept!.submit(putRows())).rejects.toThrow(AssertionError);
    expect(world.log.entries.length).toBe(1);
  });

  test('an entry that can not be applied halts the store: nothing more is decided or shown', async () => {
    const world = new World();
    world.state.applyFailure = new AssertionError('cannot happen');
    expect((await refusalOf(world.invoke(caller(), 'ingest', write))).code).toBe('REL_UNAVAILABLE');
    world.state.applyFailure = null;
    const steps = world.steps.length;
    expect((await refusalOf(world.invoke(caller(), 'query', read))).code).toBe('REL_UNAVAILABLE');
    expect(world.steps.length).toBe(steps);
  });

  test('draining lets running invocations end and refuses new ones', async () => {
    const world = new World();
    let finish = (): void => undefined;
    const running = world.invoke(caller(), 'query', () => new Promise<void>((resolve) => (finish = resolve)));
    let drained = false;
    const drain = Promise.all([world.gate.drain(), world.gate.drain()]).then(() => (drained = true));
    expect((await refusalOf(world.invoke(caller(), 'query', read))).code).toBe('REL_UNAVAILABLE');
    expect(drained).toBe(false);
    finish();
    await Promise.all([running, drain]);
    expect(world.records.map((record) => record.code)).toEqual(['REL_UNAVAILABLE', null]);
    await world.gate.drain();
  });
});

describe('admission', () => {
  test('the eleventh running query of a tenant is refused; other tenants and writes are not', async () => {
    const world = new World();
    const finish: (() => void)[] = [];
    const running = Array.from({ length: 10 }, (_, i) =>
      world.invoke(caller({ path: i % 2 === 0 ? 'acme' : 'acme/eu' }), 'query', async (invocation) => {
        invocation.snapshot();
        await new Promise<void>((resolve) => finish.push(resolve));
      }),
    );
    const refusal = await refusalOf(world.invoke(caller({ path: 'acme' }), 'query', read));
    expect([refusal.code, refusal.facts.retryAfterSecs]).toEqual(['REL_QUOTA', 1]);
    expect(await world.invoke(caller({ path: 'globex' }), 'query', read)).toBe('answer');
    expect(await world.invoke(caller({ path: 'acme' }), 'ingest', write)).toMatchObject({ accepted: 1 });
    for (const end of finish) end();
    await Promise.all(running);
    expect(await world.invoke(caller({ path: 'acme' }), 'query', read)).toBe('answer');
  });

  test('a statement is described while every slot is taken, and takes its own once it reads', async () => {
    const world = new World({ SERVICE_MAX_INFLIGHT_QUERIES: 1 });
    const described = world.invoke(caller(), 'query', async (invocation) => {
      invocation.snapshot();
      await world.invoke(caller(), 'query', async (other) => {
        other.snapshot('describe');
        expect(() => other.snapshot()).toThrow(expect.objectContaining({ code: 'REL_QUOTA' }));
      });
      return 'answer';
    });
    expect(await described).toBe('answer');
    await world.invoke(caller(), 'query', async (invocation) => {
      invocation.snapshot('describe');
      invocation.snapshot();
      expect((await refusalOf(world.invoke(caller(), 'query', read))).code).toBe('REL_QUOTA');
    });
  });

  test('a refused or failed query gives its slot back', async () => {
    const world = new World({ SERVICE_MAX_INFLIGHT_QUERIES: 1 });
    const failing = async (invocation: Invocation): Promise<never> => {
      invocation.snapshot();
      throw new ServiceError('REL_TIMEOUT', 'late');
    };
    for (let i = 0; i < 3; i++) expect((await refusalOf(world.invoke(caller(), 'query', failing))).code).toBe('REL_TIMEOUT');
    const denied = caller({ tenant: 'acme', path: 'globex' });
    for (let i = 0; i < 3; i++) expect((await refusalOf(world.invoke(denied, 'query', read))).code).toBe('REL_ACL');
  });

  test('a slot is free while the record is being written', async () => {
    const tasks: (() => void)[] = [];
    const world = new World({ SERVICE_MAX_INFLIGHT_QUERIES: 1 }, { defer: (task) => tasks.push(task) });
    const first = world.invoke(caller(), 'query', read);
    await turns(2);
    const second = world.invoke(caller(), 'query', read);
    await turns(2);
    for (const task of tasks) task();
    expect(await Promise.all([first, second])).toEqual(['answer', 'answer']);
  });

  test('what a query cost beyond its first unit is charged when it is known', async () => {
    const world = new World({ SERVICE_QUERY_QUOTA: 10 });
    await world.invoke(caller(), 'query', async (invocation) => {
      invocation.snapshot();
      invocation.describe({ costUnits: 10 });
    });
    expect((await refusalOf(world.invoke(caller(), 'query', read))).code).toBe('REL_QUOTA');
    world.clock.steadyMs += 60_000;
    expect(await world.invoke(caller(), 'query', read)).toBe('answer');
  });

  test('at the storage cap rows are refused, deleting and reading are not; at nine tenths the operator is told once', async () => {
    const world = new World();
    world.log.bytes = 900;
    await world.invoke(caller(), 'ingest', write);
    await world.invoke(caller(), 'ingest', write);
    expect(world.warnings.length).toBe(1);
    world.log.bytes = 1000;
    expect((await refusalOf(world.invoke(caller(), 'ingest', write))).code).toBe('REL_STORAGE_CAP');
    await world.invoke(caller(), 'delete', (invocation) => invocation.submit({ kind: 'delete-rows', type: 'T', keys: ['1'] }));
    expect(await world.invoke(caller(), 'query', read)).toBe('answer');
  });
});

describe('purpose', () => {
  test('a purpose stated in the statement counts for check and record', async () => {
    const world = new World();
    const stating = (purpose: string) => async (invocation: Invocation) => {
      invocation.describe({ purpose });
      invocation.snapshot();
    };
    await world.invoke(caller(), 'query', stating('fraud'));
    expect((await refusalOf(world.invoke(caller(), 'query', stating('gossip')))).code).toBe('REL_PURPOSE_UNKNOWN');
    expect(world.records.map((record) => record.purpose)).toEqual(['fraud', 'gossip']);
  });

  test('a purpose stated after the first snapshot is checked at the next', async () => {
    const world = new World();
    const refusal = await refusalOf(
      world.invoke(caller(), 'query', async (invocation) => {
        invocation.snapshot();
        invocation.describe({ purpose: 'gossip' });
        invocation.snapshot();
      }),
    );
    expect(refusal.code).toBe('REL_PURPOSE_UNKNOWN');
  });

  test('a credential limited to purposes names one of them to touch rows, and none for its own upkeep', async () => {
    const world = new World();
    const limited = caller({ purposes: ['fraud'] });
    for (const [action, act] of [
      ['query', read],
      ['search', read],
      ['ingest', write],
    ] as const) {
      expect((await refusalOf(world.invoke<unknown>(limited, action, act))).code).toBe('REL_PURPOSE');
      expect((await refusalOf(world.invoke<unknown>(limited, action, act, 'analytics'))).code).toBe('REL_ACL');
      await world.invoke<unknown>(limited, action, act, 'fraud:aml');
    }
    for (const action of ['inspect', 'audit', 'schema'] as const)
      expect(await world.invoke(limited, action, read)).toBe('answer');
  });

  test('a door may require one', async () => {
    const world = new World();
    const request = { action: 'query', purpose: null, correlationId: 'c', purposeRequired: true } as const;
    expect((await refusalOf(world.gate.invoke(caller(), request, read))).code).toBe('REL_PURPOSE');
    expect(await world.gate.invoke(caller(), { ...request, purpose: 'fraud' }, read)).toBe('answer');
  });
});

describe('tokens through the gate', () => {
  const submitRevoke = (id: string) => (invocation: Invocation) => invocation.submit({ kind: 'revoke-token', id });

  test('ordinary callers mint nothing and end tokens of their own tenant only', async () => {
    const world = new World();
    world.state.tokens.push(
      registered(tokenRecord()),
      registered(tokenRecord({ id: 'a', principal: 'bob', tenant: 'acme' })),
      registered(tokenRecord({ id: 'b', principal: 'eve', tenant: 'acme-evil' })),
      registered(tokenRecord({ id: 'c', principal: 'eve' })),
    );
    const acme = caller({ tokenId: 'x', tenant: 'acme', path: 'acme' });
    const mint = (invocation: Invocation) => invocation.submit({ kind: 'mint-token', token: tokenRecord({ id: 'new' }) });
    expect((await refusalOf(world.invoke(acme, 'administer', mint))).code).toBe('REL_ACL');
    await world.invoke(acme, 'administer', submitRevoke('a'));
    expect((await refusalOf(world.invoke(acme, 'administer', submitRevoke('b')))).code).toBe('REL_ACL');
    expect((await refusalOf(world.invoke(acme, 'administer', submitRevoke('c')))).code).toBe('REL_ACL');
    expect((await refusalOf(world.invoke(acme, 'administer', submitRevoke('absent')))).code).toBe('REL_ACL');
    await world.invoke(caller(), 'administer', submitRevoke('token-ada'));
    expect((await refusalOf(world.invoke(caller(), 'administer', submitRevoke('c')))).code).toBe('REL_ACL');
    const admin = caller({ principal: 'admin', credential: 'admin', tokenId: null });
    await world.invoke(admin, 'administer', mint);
    expect(await world.invoke(acme, 'inspect', async (invocation) => invocation.tokens().map(({ id }) => id))).toEqual(['a']);
    const all = await world.invoke(admin, 'administer', async (invocation) => invocation.tokens());
    expect(all.map(({ id }) => id)).toEqual(['token-ada', 'a', 'b', 'c']);
    expect(JSON.stringify(all, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).not.toContain(
      'secretHash',
    );
  });

  test('the administrator neither reads nor writes rows', async () => {
    const world = new World();
    const admin = caller({ principal: 'admin', credential: 'admin', tokenId: null });
    expect((await refusalOf(world.invoke(admin, 'query', read))).code).toBe('REL_ACL');
    expect((await refusalOf(world.invoke(admin, 'ingest', write))).code).toBe('REL_ACL');
  });
});

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}
