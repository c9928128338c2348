package org.wraith

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runInterruptible
import kotlinx.coroutines.withContext
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.nio.file.Path
import java.time.Duration
import kotlin.io.path.writeBytes
import kotlin.random.Random

/** A program that ends in the middle of a transfer ends at once, and the other side notices it. */
class LeavingTest {
    @TempDir
    lateinit var folder: Path

    /** Each way to leave, with the exit code. */
    private val ways = mapOf(
        "return" to 0, "exit" to 3, "throw" to 1, "halt" to 3,
        "return-with-hook" to 0, "exit-with-hook" to 3, "throw-with-hook" to 1,
    )

    private fun leaving(vararg words: String): Process {
        val library = System.getProperty("jna.library.path")
        val options = listOf("-XX:TieredStopAtLevel=1", "-Djna.library.path=$library")
        val java = "${System.getProperty("java.home")}/bin/java"
        val path = System.getProperty("surefire.test.class.path") ?: System.getProperty("java.class.path")
        return ProcessBuilder(listOf(java) + options + listOf("-cp", path, "org.wraith.Leaving") + words).start()
    }

    private suspend fun left(way: String, role: Role, film: Path) {
        val into = folder.resolve("$way-$role")
        val soon = Duration.ofSeconds(1)
        val end: suspend () -> Unit
        val event: suspend () -> Event?
        val program: Process
        if (role == Role.SENDER) {
            program = leaving(way, "sender", "$film")
            val ticket = program.inputReader().readLine()
            val transfer = asked(newNode(), ticket, into, FetchOptions(reconnect = soon)).accept(AcceptOptions())
            end = { transfer.finished() }
            event = transfer::nextEvent
        } else {
            val options = OfferOptions(bytesPerSecond = 200_000uL, reconnect = soon)
            val (offer, ticket) = offered(newNode(), film, options)
            program = leaving(way, "receiver", ticket, "$into")
            end = { offer.finished() }
            event = offer::nextEvent
        }
        val complaints = program.errorReader().readText()
        assertEquals(ways[way], runInterruptible { program.waitFor() }, complaints)
        for (word in listOf("fatal", "panicked", "SIG")) assertFalse(word in complaints, complaints)
        val error = failure<WraithException> { end() }
        val told = buildList { while (true) add(event() ?: break) }
        if (way.endsWith("with-hook")) {
            assertTrue(error is WraithException.Cancelled, "$way $role: $error")
            assertEquals(listOf(role), told.filterIsInstance<Event.Stopped>().map { it.by })
        } else {
            assertTrue(error is WraithException.NetworkLost, "$way $role: $error")
            assertTrue(told.any { it is Event.ConnectionLost })
        }
    }

    @Test
    fun `the other side notices that a program ended`() = within(3 * PATIENCE) {
        val film = folder.resolve("film.mov")
        film.writeBytes(Random(7).nextBytes(5_000_000))
        withContext(Dispatchers.IO) {
            ways.keys.flatMap { way -> listOf(Role.SENDER, Role.RECEIVER).map { async { left(way, it, film) } } }.awaitAll()
        }
    }
}
