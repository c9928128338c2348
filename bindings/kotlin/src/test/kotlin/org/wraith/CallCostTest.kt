package org.wraith

import org.junit.jupiter.api.Test
import org.junit.jupiter.api.condition.EnabledIfSystemProperty

private const val ROUNDS = 11

/** The cost of calls: medians on this machine. */
@EnabledIfSystemProperty(named = "wraith.bench", matches = "true")
class CallCostTest {
    @Test
    fun `print what calls cost`() {
        val session = sessions().first
        val none = ByteArray(0)
        val (small, large) = ByteArray(64) to ByteArray(1 shl 20)
        val batch = List(100) { ByteArray(1024) }
        cost("hash of 0 bytes", 2_000) { hash(none) }
        cost("hash of 1 MiB", 20) { hash(large) }
        cost("seal of 64 bytes", 2_000) { session.seal(none, small) }
        cost("100 x 1 KiB, 100 calls", 10) { batch.map { session.seal(none, it) } }
        cost("100 x 1 KiB, 1 call", 10) { session.sealMany(none, batch) }
    }

    /** Returns the median of some rounds, after a warm-up round. */
    private fun cost(name: String, calls: Int, work: () -> Any) {
        val rounds = List(ROUNDS + 1) {
            val begin = System.nanoTime()
            repeat(calls) { work() }
            (System.nanoTime() - begin) / 1e9 / calls
        }
        val median = rounds.drop(1).sorted()[ROUNDS / 2]
        println("%-24s %10.1f us %,12.0f a second".format(name, median * 1e6, 1 / median))
    }
}
