"""M/M/20 at load 0.9 with SimPy: the rival of bench/simulate.ts. Prints one JSON object."""
import json
import random
import sys
import time

import simpy


def customer(env, places, hold, waits):
    arrived = env.now
    with places.request() as place:
        yield place
        waits.append(env.now - arrived)
        yield env.timeout(hold)


def source(env, places, count, rng, waits):
    for _ in range(count):
        yield env.timeout(rng.expovariate(18.0))
        env.process(customer(env, places, rng.expovariate(1.0), waits))


def main():
    count = int(sys.argv[1])
    env = simpy.Environment()
    places = simpy.Resource(env, capacity=20)
    waits = []
    env.process(source(env, places, count, random.Random(1), waits))
    began = time.process_time()
    env.run()
    seconds = time.process_time() - began
    print(json.dumps({"customers": len(waits), "seconds": seconds, "meanWait": sum(waits) / len(waits)}))


main()
