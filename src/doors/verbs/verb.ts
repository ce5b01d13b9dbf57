/**
 * A verb: an operation for agents and clients, on every protocol. HTTP routes, tools, /openapi.json, the documentation, leak
 * probes and audit tests are made from the list in `all.ts`, so a verb is one file and one line.
 */
import { z } from 'zod';
import type { Action } from '../../governance/gate-contract.ts';
import type { VerbCall } from './verb-call.ts';

export interface VerbRoute {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Names in the path are members of the input. */
  readonly url: string;
}

/** A tool's description for a model that may call it. Source: Model Context Protocol, tool annotations. */
export interface ToolHints {
  readonly title: string;
  /** Changes nothing but the record of itself. */
  readonly readOnly: boolean;
  /** May remove existing data. */
  readonly destructive?: true;
  /** Repeating a call changes nothing more. */
  readonly idempotent?: true;
}

export interface Verb<I extends z.ZodObject = z.ZodObject, O extends z.ZodType = z.ZodType> {
  readonly name: string;
  /** One or two sentences for a model: the effect of the verb, and when to use it. */
  readonly description: string;
  /** The input without the purpose, which every verb takes. */
  readonly input: I;
  readonly output: O;
  readonly action: Action;
  /** Quota units. Source: specification, "Tool protocol". */
  readonly units: number;
  /** A caller that states none is refused, or has this one. */
  readonly purpose: 'required' | { readonly byDefault: string };
  readonly bucket: 'read' | 'write' | 'memory';
  /** The first route is the one that documentation names. */
  readonly http?: readonly VerbRoute[];
  /** Its routes answer with the output itself, and not in the envelope of memory replies. */
  readonly plain?: true;
  readonly tool?: ToolHints;
  /** Members of the input that its ToolCall does not repeat: texts that rest in a row of their own. */
  readonly contents?: readonly string[];
  readonly example: Readonly<Record<string, unknown>>;
  run(verbCall: VerbCall, input: z.output<I>): Promise<z.input<O>>;
}

/** Keeps the types of input and output together while a verb is written. */
export function verb<I extends z.ZodObject, O extends z.ZodType>(verbDefinition: Verb<I, O>): Verb {
  return verbDefinition as unknown as Verb;
}

export const purposeField = z.string().describe('why; a registered purpose, recorded in the audit trail');

/** The input of a verb as JSON schema, the purpose included. */
export function inputSchema(
  { input: verbInput, purpose: verbPurpose }: Verb,
  purposeKnown = false,
): Readonly<Record<string, unknown>> {
  const isPurposeStated = verbPurpose !== 'required' || purposeKnown;
  const wholeInput = verbInput.extend({ purpose: isPurposeStated ? purposeField.optional() : purposeField });
  // Exact numbers describe themselves in the schema.
  const { $schema: _, ...jsonSchema } = z.toJSONSchema(wholeInput.strict(), { io: 'input', unrepresentable: 'any' });
  return jsonSchema;
}

export const nanosecondsOut = z.bigint().describe('nanoseconds since 1970 UTC, exact');
