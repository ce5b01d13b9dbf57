/**
 * Connections that have not authenticated, over all doors. A bound holds for them: where one more comes, the one that was silent
 * for longest is cut off, so that whoever fills the bound keeps nobody out who logs in.
 */

import type { ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';

/** A socket, or what stands for one. */
export interface Stranger {
  destroy(): unknown;
}

/** Each may hold 16 KiB of a message, what one read of a socket brings (64 KiB), and the state of a TLS handshake. */
const strangersMax = 1_000;

export class Strangers {
  readonly #max: number;
  /** Those that were silent for longest first. */
  readonly #all = new Set<Stranger>();

  constructor(max = strangersMax) {
    this.#max = max;
  }

  get count(): number {
    return this.#all.size;
  }

  admit(stranger: Stranger): void {
    this.#all.add(stranger);
    if (this.#all.size <= this.#max) return;
    const [silent] = this.#all;
    this.#all.delete(silent!);
    silent!.destroy();
  }

  /** It sent a whole message. */
  heard(stranger: Stranger): void {
    if (this.#all.delete(stranger)) this.#all.add(stranger);
  }

  /** It has authenticated, or is gone. */
  leave(stranger: Stranger): void {
    this.#all.delete(stranger);
  }
}

/** Credentials that one connection may have refused before it ends. */
const refusalsMax = 5;

/** The same of connections of an HTTP server, which the server itself reads. */
export class HttpStrangers {
  readonly #strangers = new Strangers();
  /** Sockets that requests come by, by what was admitted: under TLS that is another one. */
  readonly #admitted = new WeakMap<Socket, Socket>();
  readonly #refusals = new WeakMap<Socket, number>();

  /** After all that takes connections of this server listens. */
  watch(server: Server): void {
    const handshaking = new Map<string, Socket>();
    const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
    const isSecure = server.listenerCount('secureConnection') > 0;
    server.on('connection', (socket: Socket) => {
      this.#strangers.admit(socket);
      const name = nameOf(socket);
      if (isSecure) handshaking.set(name, socket);
      else this.#admitted.set(socket, socket);
      socket.once('close', () => {
        this.#strangers.leave(socket);
        if (handshaking.get(name) === socket) handshaking.delete(name);
      });
    });
    server.on('secureConnection', (secured: Socket) => {
      const socket = handshaking.get(nameOf(secured));
      if (socket === undefined) return;
      handshaking.delete(nameOf(secured));
      this.#admitted.set(secured, socket);
    });
  }

  /** A request came that needs no credential. */
  heard(socket: Socket): void {
    this.#strangers.heard(this.#admitted.get(socket) ?? socket);
  }

  /** A request came with a good credential. */
  know(socket: Socket): void {
    const admitted = this.#admitted.get(socket);
    if (admitted === undefined) return;
    this.#admitted.delete(socket);
    this.#strangers.leave(admitted);
  }

  /** A credential was refused: where that was often, the connection ends with the answer. */
  refuse(socket: Socket, answer: ServerResponse): void {
    const count = (this.#refusals.get(socket) ?? 0) + 1;
    this.#refusals.set(socket, count);
    // Told by a header, so that the client sends its next request by another one.
    if (count >= refusalsMax) answer.shouldKeepAlive = false;
  }
}
