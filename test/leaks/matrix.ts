/**
 * The matrix: every shape by every way out, and every route, asked by every adversary of two worlds. A cell is red when the
 * two replies differ, when one holds a canary, when the ways disagree, when what is shown is not what a plain reading of the
 * organisation paths shows, or when a door that is shut answers anything but its refusal.
 */
import { assert } from '../../src/errors.ts';
import { adversaries, type Adversary, owner } from './adversaries.ts';
import { type Compared, difference } from './compare.ts';
import { conversations } from './conversations.ts';
import { narrowConversations } from './narrow-doors.ts';
import { columnarConversations } from './columnar.ts';
import { graphHttpConversations } from './graph-http.ts';
import { flightConversations } from './flight.ts';
import { grpcConversations } from './grpc.ts';
import { objectConversations } from './objects.ts';
import type { Difference } from './differences.ts';
import { asked, fits, type Rows, type Way, ways } from './doors.ts';
import { type Heard, routeName } from './lab.ts';
import { referenceRows, references } from './reference.ts';
import { adminRows, bodyless, dataRows, type Probe, type RouteRow, sentTo, sessionRows } from './routes.ts';
import { type Shape, shapes } from './shapes.ts';
import { govern } from './governed.ts';
import { openStage, type Regime, type Stage } from './stage.ts';
import { hasTurn } from '../runner/turn.ts';

export interface Red {
  readonly cell: string;
  readonly why: string;
}

/** What a run came to. */
export interface Figures {
  routes: number;
  shapes: number;
  adversaries: number;
  worlds: number;
  cells: number;
  red: number;
}

/** How much of the matrix is asked. */
export interface Extent {
  /** Otherwise two ways out for each shape and a share of the routes for each adversary, in turn: all routes by somebody. */
  readonly everything: boolean;
  /** These shapes, conversations and routes by every adversary, and no others. */
  readonly only?: ReadonlySet<string>;
  readonly adversaries?: (adversary: Adversary) => boolean;
  /** Red cells after which there is nothing to be learnt from more. */
  readonly enough?: number;
}

/** A share, for some adversaries. */
export const named = (...names: readonly string[]): Extent => ({
  everything: false,
  enough: 40,
  adversaries: ({ name }) => names.includes(name),
});

export class Matrix {
  readonly reds: Red[] = [];
  readonly figures: Figures = { routes: 0, shapes: shapes.length, adversaries: adversaries.length, worlds: 0, cells: 0, red: 0 };
  #canariesOfOwners = 0;
  /** What moves with the difference that is asked about. */
  #moves: Compared = {};
  #enough = Infinity;

  /** Two worlds that differ in these ways, asked everything. */
  async compare(regime: Regime, differing: readonly Difference[], extent: Extent): Promise<void> {
    const pair = [await openStage('first', regime), await openStage('second', regime)] as const;
    this.figures.worlds += 2;
    this.#enough = extent.enough ?? Infinity;
    const moves = differing.find((each) => each.moves !== undefined)?.moves;
    this.#moves = moves === undefined ? {} : { moves };
    const written = captured();
    try {
      await differ(
        pair,
        differing.filter(({ early }) => early === true),
      );
      if (regime === 'governed') for (const stage of pair) await govern(stage);
      const against = adversaries.filter(
        (adversary) =>
          (adversary.governed !== true || regime === 'governed') &&
          adversary.knows?.some((secret) => differing.some(({ hides }) => hides === secret)) !== true &&
          extent.adversaries?.(adversary) !== false,
      );
      const some = shapes.filter((_, i) => against.some((adversary) => takesShape(extent, adversary, i)));
      for (const stage of pair) await warm(stage, some);
      await differ(
        pair,
        differing.filter(({ early }) => early !== true),
      );
      // Ids that only one of them gave out are asked for in both.
      for (const [name, id] of pair[0].ids) if (!pair[1].ids.has(name)) pair[1].ids.set(name, id);
      for (const adversary of against) await this.#shapes(pair, adversary, extent);
      for (const adversary of against) await this.#conversations(pair, adversary, extent);
      for (const [turn, adversary] of against.entries()) await this.#routes(pair, adversary, extent, turn);
      await this.#owner(pair, some);
      if (against.length > 0 && extent.only === undefined) this.#complete(pair[0]);
      this.#lines(pair, written.text());
    } finally {
      written.end();
      for (const stage of pair) await stage.close();
    }
  }

  #red(cell: string, why: string): void {
    this.reds.push({ cell, why: why.slice(0, 600) });
    this.figures.red++;
    if (this.reds.length === this.#enough) {
      throw new Error(`too many red cells:\n${this.reds.map((red) => `${red.cell}: ${red.why}`).join('\n')}`);
    }
  }

  /** Two replies to the same request, and no canary in either. */
  async #equal(
    cell: string,
    pair: readonly [Stage, Stage],
    heard: readonly [Heard, Heard],
    row: Pick<RouteRow, 'compared'>,
    adversary: Adversary,
  ): Promise<void> {
    this.figures.cells++;
    const differs = difference(...heard, { ...row.compared, ...this.#moves });
    if (differs !== null) {
      this.#red(cell, differs);
      // What one of them did more than the other makes no further cell red.
      for (const stage of pair) await stage.lab.slot(async () => undefined);
    }
    this.#noCanary(cell, pair, heard, adversary);
  }

  #noCanary(cell: string, pair: readonly [Stage, Stage], heard: readonly [Heard, Heard], adversary: Adversary): void {
    for (const [i, { canaries, side }] of pair.entries()) {
      const { body, headers } = heard[i]!;
      const found = canaries.inColumns(Buffer.concat([Buffer.from(JSON.stringify(headers)), body]), new Set(adversary.knows));
      if (found.length > 0) this.#red(cell, `in the ${side} world: ${found.join(', ')}`);
    }
  }

  async #shapes(pair: readonly [Stage, Stage], adversary: Adversary, extent: Extent): Promise<void> {
    const turn = adversaries.indexOf(adversary);
    for (const [i, shape] of shapes.entries()) {
      if (!takesShape(extent, adversary, i)) continue;
      const open = extent.everything ? ways : [ways[i % 2]!, ways[2 + ((i + turn) % (ways.length - 2))]!];
      const answers: { readonly way: Way; readonly heard: Heard }[] = [];
      for (const way of open) {
        if (!fits(way, shape)) continue;
        const heard = await this.#ask(pair, adversary, shape, way);
        answers.push({ way, heard: heard[0] });
      }
      await this.#agree(pair[0], adversary, shape, answers);
    }
    for (const [name, sql] of Object.entries(references)) {
      const reply = await pair[0].lab.ask(ways[0]!.sent(sql, adversary.headers(pair[0])));
      await pair[1].lab.ask(ways[0]!.sent(sql, adversary.headers(pair[1])));
      this.#visible(`${adversary.name} × ${name}`, adversary, reply, pair[0], name);
    }
    const [formats, some] = [['table', 'ndjson', 'csv'], shapes.filter((shape) => shape.refused === undefined)];
    const byCommand = extent.everything ? some : some.slice(0, 1);
    for (const [i, { name, sql, notFor }] of byCommand.entries()) {
      if (notFor !== undefined) continue;
      await this.#commandLine(pair, adversary, `command line × ${name}`, sql, formats[i % 3]!);
    }
  }

  async #ask(pair: readonly [Stage, Stage], adversary: Adversary, shape: Shape, way: Way): Promise<[Heard, Heard]> {
    const heard: Heard[] = [];
    for (const stage of pair) heard.push(await stage.lab.ask(way.sent(filledIn(shape.sql, stage), adversary.headers(stage))));
    const [one, other] = heard as [Heard, Heard];
    const cell = `${adversary.name} × ${shape.name} × ${way.name}`;
    await this.#equal(cell, pair, [one, other], {}, adversary);
    const expected = adversary.shut ?? (shape.refused === undefined ? adversary.stopped : undefined);
    if (expected !== undefined && outcome(one) !== expected) this.#red(cell, `answered ${outcome(one)}`);
    return [one, other];
  }

  /** All ways give the same rows, or the same refusal. */
  async #agree(stage: Stage, adversary: Adversary, shape: Shape, answers: readonly { way: Way; heard: Heard }[]): Promise<void> {
    const [first, ...others] = answers;
    if (first === undefined || shape.moves === true) return;
    const cell = `${adversary.name} × ${shape.name} × all ways`;
    const expected = first.heard.status === 200 ? await rowsOf(first.way, first.heard) : outcome(first.heard);
    for (const { way, heard } of others) {
      const given = heard.status === 200 ? await rowsOf(way, heard) : outcome(heard);
      this.figures.cells++;
      if (!sameRows(expected, given)) {
        this.#red(cell, `${first.way.name} and ${way.name}: ${apart(comparable(expected), comparable(given))}`);
      }
    }
    assert(stage.side === 'first', 'ways are compared in one world');
  }

  /** What is shown is what the paths let show: nothing more, and nothing less. */
  #visible(cell: string, adversary: Adversary, heard: Heard, stage: Stage, name: string): void {
    if (adversary.path === undefined) return;
    this.figures.cells++;
    const expected = JSON.stringify(referenceRows(name, stage.rows, adversary.path, adversary.shares ?? (() => false)));
    const shown =
      heard.status === 200 ? JSON.stringify((JSON.parse(heard.body.toString()) as { rows: unknown }).rows) : outcome(heard);
    if (shown !== expected) this.#red(cell, `shown ${shown}, expected ${expected}`);
  }

  async #commandLine(
    pair: readonly [Stage, Stage],
    adversary: Adversary,
    name: string,
    sql: string,
    format: string,
  ): Promise<void> {
    const cell = `${adversary.name} × ${name}`;
    const [one, other] = [
      await asked(pair[0], filledIn(sql, pair[0]), adversary.headers(pair[0]), format),
      await asked(pair[1], filledIn(sql, pair[1]), adversary.headers(pair[1]), format),
    ];
    this.figures.cells++;
    if (one !== other) this.#red(cell, `${JSON.stringify(one.slice(0, 200))} | ${JSON.stringify(other.slice(0, 200))}`);
    for (const [i, text] of [one, other].entries()) {
      const found = pair[i]!.canaries.in(Buffer.from(text, 'latin1'), new Set(adversary.knows));
      if (found.length > 0) this.#red(cell, `printed ${found.join(', ')}`);
    }
  }

  async #conversations(pair: readonly [Stage, Stage], adversary: Adversary, extent: Extent): Promise<void> {
    // Those that write what others look at come last.
    const all = [
      ...narrowConversations,
      ...objectConversations,
      ...conversations,
      ...columnarConversations,
      ...grpcConversations,
      ...graphHttpConversations,
      ...flightConversations,
    ];
    for (const [i, { name, compared, hold }] of all.entries()) {
      if (!takes(extent, name, i + adversaries.indexOf(adversary))) continue;
      const [one, other] = [await hold(pair[0], adversary), await hold(pair[1], adversary)];
      if (one.length !== other.length) this.#red(`${adversary.name} × ${name}`, `${one.length} replies and ${other.length}`);
      for (let i = 0; i < Math.min(one.length, other.length); i++) {
        const row = compared === undefined ? {} : { compared };
        await this.#equal(`${adversary.name} × ${name} × reply ${i}`, pair, [one[i]!, other[i]!], row, adversary);
      }
    }
  }

  /** The first adversary takes all routes, the others a tenth of them each; of its probes, each takes a third. */
  async #routes(pair: readonly [Stage, Stage], adversary: Adversary, extent: Extent, turn: number): Promise<void> {
    const share = <T extends readonly [route: string, row: unknown]>(rows: readonly T[]): readonly T[] =>
      rows.filter(([route], i) => extent.only?.has(route) ?? (extent.everything || turn === 0 || i % 10 === turn % 10));
    for (const [route, row] of share(Object.entries(dataRows))) {
      const methods = route.startsWith('GET ') && route !== 'GET /watch/stream' ? ['GET', 'HEAD'] : [route.split(' ')[0]!];
      for (const [i, probe] of probesOf(row, extent)) {
        for (const method of methods) {
          const heard: Heard[] = [];
          for (const stage of pair) {
            const reply = await stage.lab.ask({ ...sentTo(route, probe, stage, adversary), method });
            if (method !== 'HEAD') probe.after?.(stage, adversary, reply);
            heard.push(reply);
          }
          const [one, other] = heard as [Heard, Heard];
          const cell = `${adversary.name} × ${method} ${route.split(' ')[1]!} × probe ${i}`;
          const ofStore = row.storeWide === true || probe.storeWide === true;
          const compared = ofStore && unbound.has(adversary.holder) ? bodyless : (probe.compared ?? row.compared);
          await this.#equal(cell, pair, [one, other], compared === undefined ? {} : { compared }, adversary);
          const shut = adversary.shut !== undefined && row.open !== true;
          if (shut && (method === 'HEAD' ? `${one.status}` !== adversary.shut!.slice(0, 3) : outcome(one) !== adversary.shut))
            this.#red(cell, `answered ${outcome(one)}`);
          if (
            !shut &&
            adversary.path !== undefined &&
            row.later === true &&
            adversary.stopped === undefined &&
            one.status !== 501
          )
            this.#red(cell, `is built: ${outcome(one)}`);
        }
      }
    }
    for (const [route, row] of share(Object.entries(adminRows))) {
      for (const [i, probe] of probesOf(row, extent)) {
        const cell = `${adversary.name} × ${route} × probe ${i}`;
        const onData = await both(pair, (stage) => stage.lab.ask(sentTo(route, probe, stage, adversary)));
        await this.#equal(`${cell} on the data listener`, pair, onData, row, adversary);
        if (outcome(onData[0]) !== '404 REL_NOT_FOUND') this.#red(cell, `the data listener answers ${outcome(onData[0])}`);
        if (adversary.name === 'the admin secret') continue;
        const onAdmin = await both(pair, (stage) => stage.lab.ask(sentTo(route, probe, stage, adversary, true)));
        await this.#equal(`${cell} on the admin listener`, pair, onAdmin, row, adversary);
        const refusals = sessionRows.has(route) ? [...refusalsOfAdmin, '403 REL_ACL', '404 REL_NOT_FOUND'] : refusalsOfAdmin;
        if (!refusals.includes(outcome(onAdmin[0]))) this.#red(cell, `the admin listener answers ${outcome(onAdmin[0])}`);
      }
    }
  }

  /** Somebody is answered, and somebody sees the canaries: otherwise all this would be true of a server that answers nothing. */
  async #owner(pair: readonly [Stage, Stage], asked: readonly Shape[]): Promise<void> {
    const [stage] = pair;
    for (const shape of asked) {
      const sent = ways[1]!.sent(filledIn(shape.sql, stage), owner.headers(stage));
      const heard = await stage.lab.ask(sent);
      await pair[1].lab.ask({ ...sent, headers: owner.headers(pair[1]) });
      this.figures.cells++;
      const expected = shape.refused ?? '200';
      if (!outcome(heard).endsWith(expected))
        this.#red(`the owner × ${shape.name}`, `${outcome(heard)}: ${heard.body.toString().slice(0, 300)}`);
      this.#canariesOfOwners += stage.canaries.in(heard.body, new Set()).length;
    }
    if (this.#canariesOfOwners === 0) this.#red('the owner', 'no canary was ever seen by those who may see them');
  }

  /** Every route that the server has is in the tables, was asked, and no table names one that it has not. */
  #complete({ lab }: Stage): void {
    const built = lab.routes.filter(({ method }) => method !== 'OPTIONS');
    const inTables = new Set(
      Object.keys(dataRows)
        .map((route) => `data ${route}`)
        .concat(Object.keys(adminRows).map((route) => `admin ${route}`)),
    );
    this.figures.routes = built.length;
    for (const route of built) {
      const { method, url, listener } = route;
      this.figures.cells++;
      if (!inTables.has(`${listener} ${method === 'HEAD' ? 'GET' : method} ${url}`))
        this.#red(routeName(route), 'is in no table');
      else if (listener === 'data' && !lab.reached.has(routeName(route))) this.#red(routeName(route), 'was never asked');
    }
    const names = new Set(built.map(routeName));
    for (const named of inTables) if (!names.has(named)) this.#red(named, 'is no route of the server');
  }

  /** What the operator reads is not secret from the operator, but rows are nobody’s to write there. */
  #lines(pair: readonly [Stage, Stage], stderr: string): void {
    for (const { lab, canaries, side } of pair) {
      this.figures.cells++;
      const found = canaries.in(Buffer.from([...lab.lines, stderr].join('\n')), new Set());
      if (found.length > 0) this.#red(`lines for the operator of the ${side} world`, found.join(', '));
    }
  }
}

const refusalsOfAdmin: readonly string[] = ['401 REL_UNAUTHENTICATED', '400 REL_INVALID'];

async function differ(pair: readonly Stage[], differing: readonly Difference[]): Promise<void> {
  for (const each of differing) {
    for (const stage of pair) {
      await stage.lab.slot(() => {
        stage.marks.push(stage.lab.nextNow);
        return each.run(stage, stage.side);
      });
    }
  }
}

/** Plans and answers are cached before anything differs. */
async function warm(stage: Stage, asked: readonly Shape[]): Promise<void> {
  for (const adversary of [adversaries[0]!, adversaries[4]!, adversaries[8]!]) {
    for (const { sql } of asked) await stage.lab.ask(ways[0]!.sent(filledIn(sql, stage), adversary.headers(stage)));
  }
}

/** Each is asked by one adversary in sixteen, and by the others under the next seeds. */
const takes = ({ everything, only }: Extent, name: string, index: number): boolean =>
  only?.has(name) ?? (everything || hasTurn(index, 16));

/** Of a route that is asked, a third of its probes in turn, and those that both worlds go on with. */
function probesOf({ probes }: RouteRow, { everything, only }: Extent): [number, Probe][] {
  const all = [...probes.entries()];
  if (everything || only !== undefined) return all;
  return all.filter(([i, { after }]) => after !== undefined || hasTurn(i, Math.min(3, probes.length)));
}

const takesShape = (extent: Extent, adversary: Adversary, index: number): boolean =>
  takes(extent, shapes[index]!.name, index + adversaries.indexOf(adversary));

const unbound: ReadonlySet<string | undefined> = new Set(['root', 'limited']);
const filledIn = (sql: string, stage: Stage): string => sql.replace('$C', String(stage.cursor));

async function both(pair: readonly [Stage, Stage], ask: (stage: Stage) => Promise<Heard>): Promise<[Heard, Heard]> {
  return [await ask(pair[0]), await ask(pair[1])];
}

/** Status and code, as the tables write them. */
export function outcome({ status, body }: Heard): string {
  const code = /errors\/(REL_[A-Z_]+)"/.exec(body.toString())?.[1];
  return code === undefined ? String(status) : `${status} ${code}`;
}

async function rowsOf(way: Way, heard: Heard): Promise<Rows | string> {
  try {
    return await way.rows(heard);
  } catch (error) {
    return `unreadable: ${(error as Error).message}: ${heard.body.toString().slice(0, 200)}`;
  }
}

/** Within json a text of digits and a number of as many are alike: some ways can't be read without taking one for the other. */
const comparable = (rows: Rows | string): string => JSON.stringify(rows).replaceAll(/\\"(-?\d{15,})\\"/g, '$1');

/** Where two texts part, with a little of what stands before. */
function apart(one: string, other: string): string {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  const from = Math.max(0, at - 100);
  return `${one.slice(from, at + 200)} | ${other.slice(from, at + 200)}`;
}

function sameRows(one: Rows | string, other: Rows | string): boolean {
  return comparable(one) === comparable(other);
}

/** Everything that is written to standard error meanwhile: the lines of the doors. */
function captured(): { text: () => string; end: () => void } {
  const write = process.stderr.write.bind(process.stderr);
  let text = '';
  process.stderr.write = ((piece: string | Uint8Array) => {
    text += Buffer.from(piece as string).toString();
    return true;
  }) as typeof process.stderr.write;
  return { text: () => text, end: () => (process.stderr.write = write) };
}
