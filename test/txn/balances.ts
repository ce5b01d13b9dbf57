/** The sum of all balances AS OF the instant of every commit that changed one. */
import type pg from 'pg';
import { accounts, opening } from './clients.ts';

interface Version {
  readonly id: string;
  readonly balance: string;
  readonly system_from: string;
  readonly valid_to: string;
}

const forEver = '9223372036854775807';
/** Versions of one commit follow each other by a nanosecond, those of other tables between them. */
const commitNs = 1_000n;

/** How many instants were looked at; puts into `problems` where the sum is another. Asks as of every `stride`th instant, so that about a thousand are asked. */
export async function checkBalances(client: pg.Client, problems: string[], asked = 1_000): Promise<number> {
  await client.query("SET annals.as_of = 'all'");
  const { rows } = await client.query<Version>(
    'SELECT id, balance, system_from, valid_to FROM accounts ORDER BY system_from LIMIT 10000000',
  );
  await client.query('RESET annals.as_of');
  const standing = new Map<string, number>();
  const instants: string[] = [];
  // Versions that end earlier are what was true before an update: they changed no balance that stands.
  const lasting = rows.filter(({ valid_to }) => valid_to === forEver);
  for (const [i, { id, balance, system_from }] of lasting.entries()) {
    standing.set(id, Number(balance));
    const next = lasting[i + 1];
    if (next !== undefined && BigInt(next.system_from) - BigInt(system_from) < commitNs) continue;
    instants.push(system_from);
    const sum = [...standing.values()].reduce((so, each) => so + each, 0);
    if (sum !== accounts * opening) problems.push(`broken sum: ${sum} stands in all accounts since ${system_from}`);
  }
  const stride = Math.max(1, Math.ceil(instants.length / asked));
  for (let i = 0; i < instants.length; i += stride) {
    await client.query(`SET annals.as_of_system = '${instants[i]!}'`);
    const answer = await client.query<{ sum: string; count: string }>(
      'SELECT SUM(balance) AS sum, COUNT(*) AS count FROM accounts',
    );
    const { sum, count } = answer.rows[0]!;
    if (Number(sum) !== accounts * opening || Number(count) !== accounts)
      problems.push(`broken sum: ${sum} in ${count} accounts as of ${instants[i]!}`);
  }
  await client.query('RESET annals.as_of_system');
  return instants.length;
}
