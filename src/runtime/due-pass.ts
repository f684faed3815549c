/**
 * When a controller's dequeue passes run (admission 5.4): in the turn after the change that made one due, one for all
 * changes of a turn, like the product's dequeue thread that wakes once.
 */
import type { AdmissionController } from "../core/admission/controller.ts";

export class DuePass {
  readonly #controller: AdmissionController;
  readonly #pass: () => void;
  readonly #soon: (act: () => void) => void;
  #comes = false;
  #isOpen = true;

  /** `soon` runs something in a later turn of the event loop. */
  constructor(controller: AdmissionController, pass: () => void, soon: (act: () => void) => void) {
    this.#controller = controller;
    this.#pass = pass;
    this.#soon = soon;
  }

  /** One is due, and comes in a later turn. */
  get comes(): boolean {
    return this.#comes;
  }

  /** Something at the controller may have changed. */
  look(): void {
    if (this.#comes || !this.#isOpen || !this.#controller.isPassDue) return;
    this.#comes = true;
    this.#soon(() => {
      this.#comes = false;
      if (!this.#isOpen) return;
      if (this.#controller.isPassDue) this.#pass();
      // What a pass starts may end at once, and what it could not take may fit now.
      this.look();
    });
  }

  /** One that is due runs now: nothing that follows may come between a change and what the pass makes of it. */
  settle(): void {
    if (this.#comes && this.#isOpen && this.#controller.isPassDue) this.#pass();
  }

  close(): void {
    this.#isOpen = false;
  }
}
