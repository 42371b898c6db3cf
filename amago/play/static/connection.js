// A websocket with one request on its way at a time; every request has one reply.

const ENDINGS = {
  4000: "Nothing was asked for a while, so the session has ended.",
  4001: "All sessions of this server are in use.",
  4002: "The server did not understand this page.",
};

export class Connection {
  // onReply(reply) is called for every answer, onIdle() when nothing more is asked for, and
  // onEnd(text) when the session is over.
  constructor({onOpen, onReply, onIdle, onEnd}) {
    this.waiting = false;
    this.queued = [];  // what was asked for meanwhile, at most one request of a kind
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/session`);
    this.socket.onopen = onOpen;
    this.socket.onmessage = (event) => {
      this.waiting = false;
      onReply(JSON.parse(event.data));
      if (this.queued.length) this.send(this.queued.shift());
      else if (!this.waiting) onIdle();
    };
    this.socket.onclose = (event) => {
      this.waiting = false;
      this.queued = [];
      onEnd(ENDINGS[event.code] || "The connection to the server is gone.");
    };
  }

  send(request) {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    if (this.waiting) {
      this.queued = [...this.queued.filter((one) => one.type !== request.type), request];
    } else {
      this.waiting = true;
      this.socket.send(JSON.stringify(request));
    }
  }
}
