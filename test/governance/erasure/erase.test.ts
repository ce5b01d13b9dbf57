/** Erasing a subject through /query’s statement: what is gone, what stays, what the receipt says and proves. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { acme, ErasureWorld, globex, verifyReceipt } from './erasure-world.ts';

let world: ErasureWorld;
beforeEach(async () => {
  world = await (await new ErasureWorld().open()).fill();
});

describe('ERASE SUBJECT … REASON … CERTIFY', () => {
  test('every version of the subject is gone, at every basis and after a restart; nobody else’s is', async () => {
    expect(await world.names()).toEqual(['Alice Canary', 'Bob', 'Nobody', 'Alice Married']);
    const { versions, certified } = await world.erase();
    expect([versions, certified]).toEqual([2n, true]);
    for (const more of ['', "AS OF '2024-01-01T00:00:02Z'", "AS OF SYSTEM TIME '2024-01-01T00:00:02Z'"]) {
      expect(await world.names(acme, more)).toEqual(['Bob', 'Nobody']);
    }
    expect(await world.names(globex)).toEqual(['Alice Elsewhere']);
    await world.restart();
    expect(await world.names()).toEqual(['Bob', 'Nobody']);
    expect(await world.names(globex)).toEqual(['Alice Elsewhere']);
  });

  test('the receipt verifies without Annals, and with the salt it is of this subject and no other', async () => {
    const { receipt, salt, key, id } = await world.erase();
    const text = JSON.stringify(receipt);
    const proven = verifyReceipt(text, world.logKey, key, { salt: salt!, subject: 'alice' });
    expect(proven.join('\n')).toContain(id);
    expect(() => verifyReceipt(text, world.logKey, key, { salt: salt!, subject: 'bob' })).toThrow('another subject');
    expect(() => verifyReceipt(text, world.logKey, 'ab'.repeat(32))).toThrow('not signed');
    const said = Buffer.from(receipt!.payload, 'base64').toString('utf8');
    expect(JSON.parse(said)).toMatchObject({
      receipt_id: id,
      counts: { versions: 2, keys: 1 },
      verification: { residual_hits: 0 },
    });
    expect(said).not.toContain('alice');
  });

  test('asked for again it is the first receipt, to the byte; of new rows it is another', async () => {
    const first = await world.erase();
    const again = await world.erase();
    expect(again).toEqual({ ...first, salt: null });
    await world.restart();
    expect((await world.erase()).receipt).toEqual(first.receipt);
    await world.store.put('Person', [{ id: 'p9', who: 'alice', name: 'Alice Again', age: 1 }], acme);
    expect(await world.names()).toEqual(['Bob', 'Nobody', 'Alice Again']);
    const second = await world.erase();
    expect([second.id === first.id, second.versions, second.certified]).toEqual([false, 1n, true]);
    expect(await world.names()).toEqual(['Bob', 'Nobody']);
  });

  test('nothing found and nothing erased before: 404', async () => {
    const error = await world.store.refusal("ERASE SUBJECT 'nobody' REASON 'r' CERTIFY", acme);
    expect([error.code, error.message.includes('nobody')]).toEqual(['REL_NOT_FOUND', false]);
  });

  test('without CERTIFY rows are out of reach at once, and the receipt can be had later', async () => {
    const { certified, receipt, salt } = await world.erase('alice', { certify: false });
    expect([certified, receipt]).toEqual([false, null]);
    expect(salt).toMatch(/^[0-9a-f]{64}$/);
    expect(await world.names()).toEqual(['Bob', 'Nobody']);
    expect((await world.erase()).certified).toBe(true);
  });

  test('the reason is kept without what names the subject or says what its rows said', async () => {
    const { receipt } = await world.erase('alice', { reason: 'ALICE, that is Alice Married (p1), asked by letter' });
    const { reason } = JSON.parse(Buffer.from(receipt!.payload, 'base64').toString('utf8')) as { reason: string };
    expect(reason).toBe('[erased], that is [erased] Married (p1), asked by letter');
  });

  test('cells of other rows that name the subject forbid the certificate, and say where they are', async () => {
    await world.store.register('Note', { id: 'string', about: 'string' }, 'id');
    await world.store.put(
      'Note',
      [
        { id: 'n1', about: 'alice' },
        { id: 'n2', about: 'alice and bob' },
      ],
      acme,
    );
    await world.store.put('Note', [{ id: 'n3', about: 'alice' }], globex);
    const error = await world.store.refusal("ERASE SUBJECT 'alice' REASON 'r' CERTIFY", acme);
    expect([error.code, error.facts.extras?.['residuals']]).toEqual([
      'REL_UNPROCESSABLE',
      [{ where: 'cells', what: 'Note.about', count: 1 }],
    ]);
    expect(await world.names()).toEqual(['Bob', 'Nobody']);
    await world.store.invoke(acme, 'remove', (invocation) =>
      invocation.submit({ kind: 'remove-rows', type: 'Note', keys: ['n1'] }),
    );
    expect((await world.erase()).certified).toBe(true);
  });
});

describe('where rows of a subject may lie', () => {
  const visible = async (sql: string): Promise<unknown[]> => world.store.column(sql, acme);

  test('branches: what they inherited and what they wrote themselves', async () => {
    await world.store.answer('BRANCH trial FROM main', acme);
    world.tick();
    const onTrial = { ...acme, branch: 'trial' };
    await world.store.put('Person', [{ id: 'p7', who: 'alice', name: 'Alice On Trial', age: 2 }], onTrial);
    expect(await world.names(onTrial)).toHaveLength(5);
    expect((await world.erase()).versions).toBe(3n);
    for (const caller of [acme, onTrial]) expect(await world.names(caller)).toEqual(['Bob', 'Nobody']);
    await world.restart();
    for (const caller of [acme, onTrial]) expect(await world.names(caller)).toEqual(['Bob', 'Nobody']);
  });

  test('a view’s cached answer, and a view that names the subject', async () => {
    await world.store.answer('CREATE MATERIALIZED VIEW Names AS SELECT name FROM Person REFRESH INCREMENTAL EVERY 60', acme);
    await world.store.answer(
      "CREATE MATERIALIZED VIEW Hers AS SELECT age FROM Person WHERE who = 'alice' REFRESH INCREMENTAL EVERY 60",
      acme,
    );
    for (let i = 0; i < 3; i++) expect(await visible('SELECT name FROM Names')).toHaveLength(4);
    expect((await world.erase()).certified).toBe(true);
    expect(await visible('SELECT name FROM Names')).toEqual(['Bob', 'Nobody']);
    expect((await world.store.refusal('SELECT * FROM Hers', acme)).code).toBe('REL_UNKNOWN_TYPE');
  });

  test('lookup tables are their owner’s to change: the text in one forbids the certificate', async () => {
    const files = { read: async () => Buffer.from('code,country\nalice,nl\n') };
    await world.restart({ lookupFiles: files });
    await world.store.answer("REGISTER LOOKUP codes FROM 'codes.csv' KEY (code) FIELDS (country)", acme);
    const error = await world.store.refusal("ERASE SUBJECT 'alice' REASON 'r' CERTIFY", acme);
    expect(error.facts.extras?.['residuals']).toEqual([{ where: 'lookup', what: 'codes', count: 1 }]);
    expect((await world.store.refusal("ERASE SUBJECT 'nobody' REASON 'r' CERTIFY", acme)).code).toBe('REL_NOT_FOUND');
  });
});

describe('who may', () => {
  test('a path below the tenant’s own is refused, whatever is there', async () => {
    for (const subject of ['alice', 'nobody']) {
      const error = await world.store.refusal(`ERASE SUBJECT '${subject}' REASON 'r' CERTIFY`, { ...acme, path: 'acme/eu' });
      expect(error.code).toBe('REL_ACL');
    }
  });

  test('another tenant’s subject is as if it were not there', async () => {
    const error = await world.store.refusal("ERASE SUBJECT 'bob' REASON 'r' CERTIFY", globex);
    expect(error.code).toBe('REL_NOT_FOUND');
    await world.erase('bob');
    expect((await world.store.refusal("ERASE SUBJECT 'bob' REASON 'r' CERTIFY", globex)).code).toBe('REL_NOT_FOUND');
  });
});

describe('a row under legal hold', () => {
  test('409 that lists the holds, and nothing is changed', async () => {
    await world.store.invoke(acme, 'remove', (invocation) =>
      invocation.submit({ kind: 'hold-row', id: 'hold-7', type: 'Person', key: 'p1' }),
    );
    const { positions } = world.store.service.store.log.status();
    const { rows } = world.store.service.store.projections;
    const [expected, givenUp] = [vi.spyOn(rows, 'expectErasure'), vi.spyOn(rows, 'expectNoErasure')];
    const error = await world.store.refusal("ERASE SUBJECT 'alice' REASON 'r' CERTIFY", acme);
    expect(givenUp.mock.invocationCallOrder[0]).toBeGreaterThan(expected.mock.invocationCallOrder[0]!);
    expect([error.code, error.status]).toEqual(['REL_CONFLICT', 409]);
    expect(error.message).toContain('hold-7');
    expect(await world.names()).toHaveLength(4);
    expect(world.store.service.store.projections.erasures.all()).toEqual([]);
    expect(world.store.service.store.log.status().positions).toBe(positions);
    await world.store.invoke(acme, 'remove', (invocation) => invocation.submit({ kind: 'release-retention', id: 'hold-7' }));
    expect((await world.erase()).certified).toBe(true);
  });
});
