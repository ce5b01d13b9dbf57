/**
 * The extended protocol: statements that are prepared, portals that are bound to them, errors until Sync. All up to a Sync is one
 * transaction: a write waits for the Sync, which runs it by itself where nothing else came, and commits it with the others otherwise.
 */
import { ServiceError } from '../../errors.ts';
import type { Executed } from '../../planner/planner-contract.ts';
import type { ParameterType } from '../../planner/syntax/statement.ts';
import type { Frontend } from './codec.ts';
import { inTurns, type Steps } from '../../planner/expressions/resumable-steps.ts';
import { type SqlCommand, commandOf, isControl, splitStatements } from './parse-command.ts';
import { type BoundParameter, describedOid } from './parameters.ts';
import type { PostgresReplies } from './replies.ts';
import type { DataRows } from './data-rows.ts';
import type { Ask, CommandRunner } from './command-runner.ts';
import { ProtocolRefusal } from './errors.ts';

type Extension = Extract<Frontend, { readonly kind: 'parse' | 'bind' | 'describe' | 'execute' | 'close' }>;
type Of<K extends Extension['kind']> = Extract<Extension, { readonly kind: K }>;

interface Prepared {
  readonly text: string;
  /** The command; null: an empty statement. */
  readonly command: SqlCommand | null;
  readonly oids: readonly number[];
  /** The types of its parameters, once they are inferred. */
  types: readonly ParameterType[] | null;
}

interface Portal {
  readonly prepared: Prepared;
  readonly values: readonly (Buffer | null)[];
  readonly formats: readonly number[];
  readonly resultFormats: readonly number[];
  ran: { readonly executed: Executed; readonly rows: DataRows } | null;
}

interface Held {
  readonly portal: Portal;
  readonly message: Of<'execute'>;
}

/** Names of one connection, of statements and of portals. */
const namesMax = 10_000;

export class ExtendedQuery {
  readonly #runner: CommandRunner;
  readonly #replies: PostgresReplies;
  readonly #yieldTurn: () => Promise<void>;
  readonly #statements = new Map<string, Prepared>();
  readonly #portals = new Map<string, Portal>();
  /** The portal without a name, which every statement of most clients has: a map would be emptied by each. */
  #unnamed: Portal | null = null;
  /** A write that waits for Sync. */
  #held: Held | null = null;
  #closings: Of<'close'>[] = [];
  #skipping = false;

  constructor(runner: CommandRunner, replies: PostgresReplies, yieldTurn: () => Promise<void>) {
    this.#runner = runner;
    this.#replies = replies;
    this.#yieldTurn = yieldTurn;
    runner.onDeallocate = (name) => {
      if (name === null) return this.#statements.clear();
      this.#statement(name);
      this.#deallocate(name);
    };
  }

  /** An error was reported: messages are skipped until Sync. */
  get skipping(): boolean {
    return this.#skipping;
  }

  /** Undefined where it is handled at once. */
  handle(message: Extension): Promise<void> | void {
    if (this.#skipping) return;
    if (this.#held === null) return this.#take(message);
    if (message.kind === 'close') return void this.#closings.push(message);
    return this.flush().then(() => (this.#skipping ? undefined : this.#take(message)));
  }

  #take(message: Extension): Promise<void> | void {
    const fail = (error: unknown): Promise<void> => this.#fail(error, this.#textOf(message));
    try {
      this.#runner.begins();
      return this.#step(message)?.catch(fail);
    } catch (error) {
      return fail(error);
    }
  }

  /** Runs, or commits, what waits for the Sync. */
  finish(): Promise<void> | void {
    if (this.#held !== null) return this.#finishHeld(this.#held);
    return this.#runner.hasImplicit ? this.#runner.endImplicit().catch((error: unknown) => this.#fail(error)) : undefined;
  }

  async #finishHeld({ portal, message }: Held): Promise<void> {
    this.#held = null;
    try {
      await this.#execute(portal, message.rowsMax);
      for (const closing of this.#closings) this.#close(closing);
    } catch (error) {
      await this.#fail(error, portal.prepared.text);
    }
    this.#closings = [];
  }

  /** A transaction may be over: then its portals are. */
  sync(): void {
    this.#skipping = false;
    if (this.#runner.status === 'T') return;
    this.#unnamed = null;
    if (this.#portals.size > 0) this.#portals.clear();
  }

  /** More follows the write than its Sync: it becomes the first of a transaction, which the Sync commits. */
  async flush(): Promise<void> {
    if (this.#held === null) return;
    const { portal, message } = this.#held;
    const closings = this.#closings;
    this.#held = null;
    this.#closings = [];
    try {
      this.#runner.beginImplicit();
      await this.#execute(portal, message.rowsMax);
      for (const closing of closings) this.#close(closing);
    } catch (error) {
      await this.#fail(error, portal.prepared.text);
    }
  }

  /** Makes all replies so far ready to be sent. */
  async release(): Promise<void> {
    await this.flush();
  }

  /** Reports an error that occurred outside of its messages. */
  refuse(error: unknown): Promise<void> {
    return this.#fail(error);
  }

  async #fail(error: unknown, text?: string): Promise<void> {
    this.#skipping = true;
    await this.#runner.fail(error, text);
  }

  #step(message: Extension): Promise<void> | void {
    switch (message.kind) {
      case 'parse':
        return this.#parse(message);
      case 'bind':
        return this.#bind(message);
      case 'describe':
        return message.what === 'statement' ? this.#describeStatement(message.name) : this.#describePortal(message.name);
      case 'execute': {
        const portal = this.#portal(message.portal);
        const { command } = portal.prepared;
        if (command?.kind === 'ask' && command.mayWrite && portal.ran === null && !this.#runner.isOpen) {
          this.#held = { portal, message };
          return;
        }
        return this.#execute(portal, message.rowsMax);
      }
      case 'close':
        return this.#close(message);
    }
  }

  #parse(message: Of<'parse'>): Promise<void> | void {
    const steps = this.#parseSteps(message);
    if (steps.next().done !== true) return inTurns(steps, this.#yieldTurn);
  }

  *#parseSteps({ name, text, types }: Of<'parse'>): Steps<void> {
    if (name !== '' && this.#statements.has(name))
      throw new ProtocolRefusal('42P05', 'REL_CONFLICT', `a statement ${JSON.stringify(name)} is prepared already`);
    if (this.#statements.size >= namesMax)
      throw new ServiceError('REL_TOO_LARGE', `a connection prepares at most ${namesMax} statements: close some`);
    const [statement, more] = yield* splitStatements(text);
    if (more !== undefined)
      throw new ProtocolRefusal(
        '42601',
        'REL_PARSE',
        'a prepared statement holds one statement: send several by the simple protocol',
      );
    const command = statement === undefined ? null : yield* commandOf(statement);
    this.#statements.set(name, { text, command, oids: types, types: null });
    this.#replies.bare('1');
  }

  #bind({ portal, statement, formats, values, resultFormats }: Of<'bind'>): void {
    const prepared = this.#statement(statement);
    if (formats.length > 1 && formats.length !== values.length)
      throw new ProtocolRefusal('08P01', 'REL_INVALID', `${formats.length} formats are given for ${values.length} values`);
    if (portal !== '' && this.#portals.has(portal))
      throw new ProtocolRefusal('42P03', 'REL_CONFLICT', `a portal ${JSON.stringify(portal)} is open already`);
    if (this.#portals.size >= namesMax)
      throw new ServiceError('REL_TOO_LARGE', `a connection opens at most ${namesMax} portals: close some`);
    const bound: Portal = { prepared, formats, values, resultFormats, ran: null };
    if (portal === '') this.#unnamed = bound;
    else this.#portals.set(portal, bound);
    this.#replies.bare('2');
  }

  async #describeStatement(name: string): Promise<void> {
    const prepared = this.#statement(name);
    const { command, oids } = prepared;
    const replies = this.#replies;
    if (command?.kind !== 'ask' || isControl(command)) {
      replies.parameterTypes([]);
      if (command?.kind === 'show') replies.fields(this.#runner.fieldsOf(this.#runner.show(command.name).answer.columns, []));
      else replies.bare('n');
      return;
    }
    const { parameters, columns } = await this.#runner.describe(command, oids);
    prepared.types = parameters;
    const lists = new Map(command.spreads.map(({ parameter, stated }) => [parameter, stated]));
    replies.parameterTypes(parameters.map((type, i) => describedOid(oids[i] ?? 0, type, lists.get(i + 1))));
    if (columns.length === 0) replies.bare('n');
    else replies.fields(this.#runner.fieldsOf(columns, []));
  }

  /** A question runs when its columns are asked for: they come with the rows. */
  async #describePortal(name: string): Promise<void> {
    const portal = this.#portal(name);
    const { command, oids } = portal.prepared;
    if (command?.kind === 'ask' && command.mayWrite && portal.ran === null) {
      if (isControl(command) || !command.returns) return this.#replies.bare('n');
      const { columns, parameters } = await this.#runner.describe(command, oids);
      portal.prepared.types = parameters;
      if (columns.length === 0) return this.#replies.bare('n');
      return this.#replies.fields(this.#runner.fieldsOf(columns, portal.resultFormats));
    }
    if (command?.kind !== 'ask' && command?.kind !== 'show') return this.#replies.bare('n');
    const { rows } = await this.#run(portal, command);
    this.#replies.fields(rows.fields);
  }

  async #execute(portal: Portal, rowsMax: number): Promise<void> {
    const { command } = portal.prepared;
    if (command === null) return this.#replies.bare('I');
    if (command.kind !== 'ask' && command.kind !== 'show') return this.#runner.run(command);
    const { executed, rows } = await this.#run(portal, command);
    if (command.kind === 'ask' && isControl(command)) {
      if (executed.answer.rowCount > 0 && command.tag === null)
        this.#replies.notice('what this statement answers is shown by the simple protocol only');
      return this.#runner.complete(command, executed);
    }
    const ended = await this.#runner.send(rows, rowsMax === 0 ? Number.POSITIVE_INFINITY : rowsMax);
    if (ended) this.#runner.complete(command, executed);
    else this.#replies.bare('s');
  }

  async #run(portal: Portal, command: Ask | Extract<SqlCommand, { readonly kind: 'show' }>): Promise<NonNullable<Portal['ran']>> {
    if (portal.ran !== null) return portal.ran;
    const { values, formats, resultFormats, prepared } = portal;
    const keepTypes = (types: readonly ParameterType[]): void => void (prepared.types = types);
    const bound: BoundParameter = { values, formats, oids: prepared.oids, types: prepared.types, onTypes: keepTypes };
    const executed = command.kind === 'show' ? this.#runner.show(command.name) : await this.#runner.ask(command, bound);
    portal.ran = { executed, rows: this.#runner.rowsOf(executed.answer, resultFormats) };
    return portal.ran;
  }

  #close({ what, name }: Of<'close'>): void {
    if (what === 'statement') this.#deallocate(name);
    else if (name === '') this.#unnamed = null;
    else this.#portals.delete(name);
    this.#replies.bare('3');
  }

  #deallocate(name: string): void {
    this.#statements.delete(name);
  }

  #statement(name: string): Prepared {
    const preparedStatement = this.#statements.get(name);
    if (preparedStatement === undefined)
      throw new ProtocolRefusal('26000', 'REL_NOT_FOUND', `no statement ${JSON.stringify(name)} is prepared on this connection`);
    return preparedStatement;
  }

  #portal(name: string): Portal {
    const portal = this.#portalOf(name);
    if (portal === undefined) throw new ProtocolRefusal('34000', 'REL_NOT_FOUND', `no portal ${JSON.stringify(name)} is open`);
    return portal;
  }

  #portalOf(name: string): Portal | undefined {
    return name === '' ? (this.#unnamed ?? undefined) : this.#portals.get(name);
  }

  #textOf(message: Extension): string | undefined {
    switch (message.kind) {
      case 'parse':
        return message.text;
      case 'execute':
        return this.#portalOf(message.portal)?.prepared.text;
      case 'describe':
        if (message.what === 'portal') return this.#portalOf(message.name)?.prepared.text;
        return this.#statements.get(message.name)?.text;
    }
    return undefined;
  }
}
