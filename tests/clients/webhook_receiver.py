"""A receiver of webhooks that verifies them with the library of the Standard Webhooks specification.

Prints its port, reads the secret from standard input, then prints one line of JSON for each delivery: the verified body,
or the reason of its refusal.
"""

import http.server
import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            print(json.dumps({"verified": webhook.verify(body, headers)}), flush=True)
            self.send_response(204)
        except WebhookVerificationError as error:
            print(json.dumps({"refused": str(error)}), flush=True)
            self.send_response(401)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_address[1], flush=True)
webhook = Webhook(sys.stdin.readline().strip())
server.serve_forever()
