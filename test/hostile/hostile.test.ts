/**
 * A few of the hostile statements on small tables. The full siege with `/health` within 50 ms is `npm run hostile`, on a
 * quiet machine: here others run beside it, so what is held against a limit is how long the server's own thread computed
 * between two turns of its event loop, which no other process can make longer.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bombs } from './bombs.ts';
import { endure, heldMaxKb, hostileClients, supplyHeld } from './clients.ts';
import { crowds, socketMaxKb, stand } from './crowds.ts';
import { tell } from '../runner/tell.ts';
import { inTurn } from '../runner/turn.ts';
import { besiege, type Siege, suffer, supply } from './siege.ts';

const sizes = { big: 40_000, middle: 10_000, sides: 4_000 };
/**
 * In CPU time. With another test on the other core, caches, clock and the compiler's threads are shared: a statement that
 * holds 40 ms on a quiet machine was seen to take 103 here. A hold of whole seconds is what this is to notice.
 */
const holdMaxMs = 250;
const timeoutMs = 2_000;
/** Of either kind. What the server's heap grows by meanwhile for other reasons, some megabytes, is divided by them too. */
const crowdSize = 300;

let siege: Siege;
beforeAll(async () => {
  siege = await besiege({ SERVICE_QUERY_TIMEOUT_SECS: String(timeoutMs / 1000), SERVICE_BODY_LIMIT_MB: '64' }, 1_024);
  await supply(siege, sizes);
  await supplyHeld(siege);
}, 120_000);
afterAll(() => siege.stop());

describe('a server under hostile statements', () => {
  // On a machine that does other things, what would be answered may run into its timeout: a right end as well.
  const all = bombs(sizes);
  const tried = inTurn(all, 15);
  tell(`${tried.length} of ${all.length} hostile statements (npm run hostile)`);
  const lenient = tried.map((bomb) => ({
    ...bomb,
    ends: bomb.ends.includes('answered') ? [...bomb.ends, 'REL_TIMEOUT'] : bomb.ends,
  }));
  test.each(lenient)('$name', { timeout: 60_000 }, async (bomb) => {
    const { wrong, end, health, holdMs } = await suffer(siege, bomb);
    expect(wrong).toBeNull();
    expect(health.failed).toBe(0);
    expect([end, holdMs < holdMaxMs, holdMs]).toEqual([end, true, holdMs]);
  });

  test.each(hostileClients.filter(({ long }) => !long))(
    'connections that bring $name hold little',
    { timeout: 60_000 },
    async (client) => {
      const { heldKb: first, health } = await endure(siege, client, 2);
      // What the heap grew by meanwhile is nobody's: what connections hold is held by the next ones, too.
      const heldKb = first < heldMaxKb ? first : Math.min(first, (await endure(siege, client, 2)).heldKb);
      expect(heldKb).toBeLessThan(heldMaxKb);
      expect([health.failed, health.worstMs < 10_000]).toEqual([0, true]);
    },
  );

  // The whole, a thousand of either kind, is `npm run hostile -- --only crowd`.
  test.each(inTurn(crowds, 4))('a crowd before the $door door holds little', { timeout: 60_000 }, async (crowd) => {
    const { heldKb: first, ended, health } = await stand(siege, crowd, crowdSize, 750);
    const heldKb = first < socketMaxKb ? first : Math.min(first, (await stand(siege, crowd, crowdSize, 750)).heldKb);
    expect([ended, health.failed]).toEqual([0, 0]);
    expect(heldKb).toBeLessThan(socketMaxKb);
  });

  test('a hold that was planted is noticed', async () => {
    await siege.measure();
    siege.hold(holdMaxMs);
    expect((await siege.measure()).holdMs).toBeGreaterThanOrEqual(holdMaxMs);
    expect((await siege.measure()).holdMs).toBeLessThan(holdMaxMs);
  });
});
