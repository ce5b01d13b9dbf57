/** POST /exhibits, POST /exhibits/:id/links, GET /exhibits/:id: answers and words under seal, to be derived again. */
import { z } from 'zod';
import type { ExhibitDesk } from '../../../governance/gate-contract.ts';
import { linkExhibit, type Linked, openExhibit } from '../../../planner/exhibits/link.ts';
import { readRecipe } from '../../../planner/exhibits/recipe.ts';
import type { ExhibitLink, ExhibitView } from '../../../projections/access-paths.ts';
import type { App, HttpContext } from '../context.ts';
import { statedPurpose, wantsSync } from '../headers.ts';
import { invoke, signalOf } from '../invoke.ts';
import { nanoseconds, problems } from '../schemas.ts';

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

export function registerExhibits(app: App, context: HttpContext): void {
  const engine = context.system.version;
  const parts = { planner: context.planner, engine, yieldTurn: context.yieldTurn };

  app.route({
    method: 'POST',
    url: '/exhibits',
    config: { access: 'token', action: 'replay', bucket: 'write' },
    schema: { summary: 'Open an exhibit', tags: ['exhibits'], body: openBody, response: { 201: linkReply, ...problems } },
    handler: async (request, reply) => {
      const { title = 'exhibit', purpose } = request.body;
      const sync = wantsSync(request);
      const opened = await invoke(context, request, 'replay', purpose, (invocation) =>
        openExhibit(invocation, parts, { exhibit: context.ids.next(), title, sync }),
      );
      return reply.code(201).send(linked(opened));
    },
  });

  app.route({
    method: 'POST',
    url: '/exhibits/:id/links',
    config: { access: 'token', action: 'replay', bucket: 'write' },
    schema: {
      summary: 'Put the answer of a query, a note or a decision on an exhibit',
      tags: ['exhibits'],
      params: named,
      body: linkBody,
      response: { 201: linkReply, ...problems },
    },
    handler: async (request, reply) => {
      const { act, sql, text, purpose } = request.body;
      const sync = wantsSync(request);
      const signal = signalOf(request.raw.socket);
      const put = await invoke(context, request, 'replay', purpose, (invocation) =>
        linkExhibit(invocation, parts, {
          exhibit: request.params.id,
          act,
          purpose: statedPurpose(request, purpose),
          sync,
          signal,
          ...(sql === undefined ? {} : { sql }),
          ...(text === undefined ? {} : { text }),
        }),
      );
      return reply.code(201).send(linked(put));
    },
  });

  app.route({
    method: 'GET',
    url: '/exhibits/:id',
    config: { access: 'token', action: 'inspect', bucket: 'read' },
    schema: {
      summary: 'An exhibit and its links',
      tags: ['exhibits'],
      params: named,
      querystring: page,
      response: { 200: exhibitReply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        const desk = invocation.exhibits();
        const { after = '0', limit = String(linksDefault) } = request.query;
        return shown(desk, desk.exhibit(request.params.id), Number(after), Math.min(linksMax, Math.max(1, Number(limit))));
      }),
  });
}

function linked({ link, basis, rowCount, exhibit }: Linked) {
  return {
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
  };
}

async function shown(desk: ExhibitDesk, exhibit: ExhibitView, after: number, limit: number) {
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

/** Seals, act, time and principal are the chain; what was asked is for those who may ask it again. */
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
