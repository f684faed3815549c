/**
 * The one bus of a run: everything that happened, in order, after the state has changed (DESIGN 4).
 *
 * Nothing that decides listens here.
 */
import { EventEmitter } from "eventemitter3";
import type { RunEvent } from "../core/events.ts";

export type RunBus = EventEmitter<{ event: [RunEvent] }>;

export const newRunBus = (): RunBus => new EventEmitter();
