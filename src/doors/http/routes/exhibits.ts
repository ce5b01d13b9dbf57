/** POST /exhibits, POST /exhibits/:id/links, GET /exhibits/:id: answers and words under seal, to be derived again. */
import { z } from 'zod';
import type { ExhibitDesk } from '../../../governance/gate-contract.ts';
import { linkExhibit, type Linked, openExhibit } from '../../../planner/exhibits/link.ts';
import { readRecipe } from '../../../planner/exhibits/recipe.ts';
import type { ExhibitLink, ExhibitView } from '../../../projections/access-paths.ts';
import type { HttpContext } from '../context.ts';
import { reply, type Answered, route, type Route } from '../route.ts';
import { statedPurpose, wantsSync } from '../request-headers.ts';
import { signalOf } from '../invoke.ts';
import { nanoseconds } from '../schemas.ts';

const seal = z.string().describe('SHA-256, lower-case hex');

const linkReply = z
  .object({
    exhibit_id: z.string(),
    seq: z.int().describe('number of the link; 0 opened the exhibit'),
    act: z.string(),
    seal,
    prev_seal: seal,
    basis: nanoseconds.describe('as_of_system of what was read'),
    result_digest: seal,
    row_count: z.int().nullable().describe('of a query; null of words'),
    leaf_index: z.int().describe('of the entry in the log: /audit/proof proves it'),
    system_from: nanoseconds,
  })
  .meta({ id: 'ExhibitLinkReply' });

const shownLink = z.object({
  seq: z.int(),
  act: z.string(),
  principal: z.string(),
  time: nanoseconds,
  seal,
  prev_seal: seal,
  basis: nanoseconds.nullable(),
  statement: z.string().nullable().describe('null without the right to replay the link'),
  text: z.string().nullable(),
  result_digest: seal.nullable(),
  leaf_index: z.int().nullable(),
});

const exhibitReply = z
  .object({
    exhibit_id: z.string(),
    organization: z.string().nullable(),
    title: z.string().nullable(),
    created_at: nanoseconds,
    opening_seal: seal,
    link_count: z.int(),
    links: z.array(shownLink),
    next: z.int().nullable().describe('pass as `after` for the links that follow'),
  })
  .meta({ id: 'Exhibit' });

const openBody = z.object({ title: z.string().optional(), purpose: z.string().optional() });

const linkBody = z.object({
  act: z.string().default('query').describe('query, note or decision'),
  sql: z.string().optional().describe('of a query'),
  text: z.string().optional().describe('of a note or decision'),
  purpose: z.string().optional(),
});

const linksDefault = 100;
const linksMax = 1_000;

const page = z.object({
  after: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional()
    .describe('links with a greater number'),
  limit: z
    .string()
    .regex(/^\d{1,4}$/)
    .optional()
    .describe(`1 to ${linksMax}`),
});

const named = z.object({ id: z.string() });

export const exhibitRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/exhibits',
    access: 'token',
    action: 'replay',
    bucket: 'write',
    summary: 'Open an exhibit',
    tags: ['exhibits'],
    body: openBody,
    replies: { 201: linkReply },
    purposeIn: 'body',
    example: { body: { title: 'a text' } },
    run: async (invocation, { body, request, context }) => {
      const { title = 'exhibit' } = body;
      const sync = wantsSync(request);
      return createdLink(await openExhibit(invocation, partsOf(context), { exhibit: context.ids.next(), title, sync }));
    },
  }),

  route({
    method: 'POST',
    path: '/exhibits/:id/links',
    access: 'token',
    action: 'replay',
    bucket: 'write',
    summary: 'Put the answer of a query, a note or a decision on an exhibit',
    tags: ['exhibits'],
    params: named,
    body: linkBody,
    replies: { 201: linkReply },
    purposeIn: 'body',
    example: { params: { id: 'an exhibit' }, body: { act: 'note', text: 'a text' } },
    run: async (invocation, { params, body, request, context }) => {
      const { act, sql, text, purpose } = body;
      const put = await linkExhibit(invocation, partsOf(context), {
        exhibit: params.id,
        act,
        purpose: statedPurpose(request, purpose),
        sync: wantsSync(request),
        signal: signalOf(request.raw.socket),
        ...(sql === undefined ? {} : { sql }),
        ...(text === undefined ? {} : { text }),
      });
      return createdLink(put);
    },
  }),

  route({
    method: 'GET',
    path: '/exhibits/:id',
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'An exhibit and its links',
    tags: ['exhibits'],
    params: named,
    query: page,
    replies: { 200: exhibitReply },
    example: { params: { id: 'an exhibit' } },
    run: async (invocation, { params, query }) => {
      const desk = invocation.exhibits();
      const { after = '0', limit = String(linksDefault) } = query;
      return describeExhibit(desk, desk.exhibit(params.id), Number(after), Math.min(linksMax, Math.max(1, Number(limit))));
    },
  }),
];

function partsOf({ planner, system, yieldTurn }: HttpContext) {
  return { planner, engine: system.version, yieldTurn };
}

function createdLink({ link, basis, rowCount, exhibit }: Linked): Answered {
  return reply(201, {
    exhibit_id: exhibit,
    seq: link.link,
    act: link.act,
    seal: link.seal,
    prev_seal: link.previousSeal,
    basis: basis,
    result_digest: link.resultHash,
    row_count: rowCount,
    leaf_index: link.leaf,
    system_from: link.time,
  } satisfies Partial<Record<keyof z.input<typeof linkReply>, unknown>>);
}

async function describeExhibit(desk: ExhibitDesk, exhibit: ExhibitView, after: number, limit: number) {
  const opening = exhibit.links[0]!;
  const links = exhibit.links.slice(Math.max(1, after + 1)).slice(0, limit);
  const last = links.at(-1)?.link ?? after;
  const described = [];
  for (const link of links) described.push(await shownLinkOf(desk, exhibit, link));
  return {
    exhibit_id: exhibit.id,
    organization: exhibit.path,
    title: (await shownLinkOf(desk, exhibit, opening)).text,
    created_at: opening.time,
    opening_seal: opening.seal,
    link_count: exhibit.links.length - 1,
    links: described,
    next: last < exhibit.links.length - 1 ? last : null,
  };
}

/** Seals, act, time and principal form the chain; the statement is shown only to callers who may run it again. */
async function shownLinkOf(desk: ExhibitDesk, exhibit: ExhibitView, link: ExhibitLink) {
  const readable = desk.mayReplay(link);
  const text = readable ? (await desk.entry(exhibit, link)).recipe : null;
  const recipe = text === null ? null : readRecipe(text);
  return {
    seq: link.link,
    act: link.act,
    principal: link.principal,
    time: link.time,
    seal: link.seal,
    prev_seal: link.previousSeal,
    basis: recipe?.grant.instant ?? null,
    statement: recipe?.statement ?? null,
    text: recipe?.text ?? null,
    result_digest: readable ? link.resultHash : null,
    leaf_index: readable ? link.leaf : null,
  };
}
