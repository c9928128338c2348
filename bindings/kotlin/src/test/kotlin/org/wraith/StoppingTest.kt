package org.wraith

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Semaphore
import kotlinx.coroutines.sync.withPermit
import kotlinx.coroutines.withContext
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.BeforeEach
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.nio.file.Path
import kotlin.io.path.exists
import kotlin.io.path.readBytes
import kotlin.io.path.writeBytes
import kotlin.random.Random
import kotlin.time.Duration
import kotlin.time.TimeSource

private const val MOMENTS = 20
private const val AT_ONCE = 10
private const val FILM_BYTES = 5_000_000

/** Half a second is left for the last stop. */
private const val RATE = 5_000_000uL

/** The transfer is not complete before a stop. */
private const val SLOW = 500_000uL

/** One end of a transfer. */
private interface End : AutoCloseable {
    fun bytes(): ULong?
    suspend fun event(): Event?
    suspend fun cancel(): Boolean
    suspend fun finished()
}

private class SendingEnd(val offer: Offer) : End {
    override fun bytes() = offer.progress()?.bytes
    override suspend fun event() = offer.nextEvent()
    override suspend fun cancel() = offer.cancel()
    override suspend fun finished() { offer.finished() }
    override fun close() = offer.close()
}

private class ReceivingEnd(val transfer: Transfer) : End {
    override fun bytes() = transfer.progress()?.bytes
    override suspend fun event() = transfer.nextEvent()
    override suspend fun cancel() = transfer.cancel()
    override suspend fun finished() { transfer.finished() }
    override fun close() = transfer.close()
}

/** A running transfer. Its ends can be taken out: nothing else refers to them. */
private class Running(val nodes: Map<Role, Node>, private val ends: MutableMap<Role, End>) {
    fun end(role: Role) = ends.getValue(role)
    fun take(role: Role) = ends.remove(role)!!
    fun other(role: Role) = end(if (role == Role.SENDER) Role.RECEIVER else Role.SENDER)
}

private enum class Way { CANCEL, CLOSE, CLOSE_WHILE_A_COROUTINE_WAITS, THROW_IN_USE, COLLECT, SHUT_DOWN }

/** One side stops: both sides end, with the side that stopped as the reason, at any moment and in any way. */
class StoppingTest {
    @TempDir
    lateinit var folder: Path
    private lateinit var film: Path

    @BeforeEach
    fun film() {
        film = folder.resolve("film.mov")
        film.writeBytes(Random(7).nextBytes(FILM_BYTES))
    }

    /** Starts a transfer, and waits until both sides know that it was accepted. */
    private suspend fun started(name: String, rate: ULong = RATE): Running {
        val nodes = mapOf(Role.SENDER to newNode(), Role.RECEIVER to newNode())
        val (offer, ticket) = offered(nodes.getValue(Role.SENDER), film, OfferOptions(bytesPerSecond = rate))
        val incoming = asked(nodes.getValue(Role.RECEIVER), ticket, folder.resolve(name))
        val transfer = incoming.accept(AcceptOptions())
        val ends = mutableMapOf(Role.SENDER to SendingEnd(offer), Role.RECEIVER to ReceivingEnd(transfer))
        for (end in ends.values) accepted(end)
        return Running(nodes, ends)
    }

    private suspend fun accepted(end: End) {
        while (end.event() != Event.Accepted) {
            // Skips earlier events.
        }
    }

    private suspend fun moment(end: End, moment: Int) {
        while ((end.bytes() ?: 0uL) < (moment * (FILM_BYTES / 2) / MOMENTS).toULong()) delay(1)
    }

    /** Waits for the end. Returns false if the transfer was complete before the stop. */
    private suspend fun isCancelled(end: End) = try {
        end.finished()
        false
    } catch (_: WraithException.Cancelled) {
        true
    }

    private suspend fun stop(way: Way, role: Role, running: Running, isOver: () -> Boolean) {
        when (way) {
            Way.CANCEL -> assertEquals(running.end(role).cancel(), isCancelled(running.end(role)))
            Way.CLOSE -> running.take(role).close()
            Way.SHUT_DOWN -> running.nodes.getValue(role).shutdown()
            Way.THROW_IN_USE -> failure<ArithmeticException> { running.take(role).use { throw ArithmeticException() } }
            Way.CLOSE_WHILE_A_COROUTINE_WAITS -> coroutineScope {
                val own = running.take(role)
                val waiting = async(start = CoroutineStart.UNDISPATCHED) { own.finished() }
                own.close()
                waiting.cancelAndJoin()
            }
            Way.COLLECT -> {
                running.take(role)
                while (!isOver()) {
                    System.gc()
                    delay(20)
                }
            }
        }
    }

    /** Stops one side, and returns the time until both have ended, or null if they had ended before. */
    private suspend fun stopped(way: Way, role: Role, moment: Int): Duration? = coroutineScope {
        val running = started("in-$way-$role-$moment")
        val other = running.other(role)
        moment(running.end(role), moment)
        val begin = TimeSource.Monotonic.markNow()
        // No wait for a peer that comes back.
        val ended = async { isCancelled(other) }
        stop(way, role, running, ended::isCompleted)
        if (!ended.await()) return@coroutineScope null
        val took = begin.elapsedNow()
        if (way == Way.CANCEL || way == Way.SHUT_DOWN) assertTrue(isCancelled(running.take(role)))
        val told = buildList { while (true) add(other.event() ?: break) }
        assertEquals(listOf(role), told.filterIsInstance<Event.Stopped>().map { it.by })
        assertTrue(told.last() is Event.Failed)
        other.close()
        took
    }

    private suspend fun <T> atAllMoments(work: suspend (Int) -> T): List<T> = withContext(Dispatchers.Default) {
        val places = Semaphore(AT_ONCE)
        (0 until MOMENTS).map { async { places.withPermit { work(it) } } }.awaitAll()
    }

    @Test
    fun `a stop ends both sides at any moment`() = within(5 * PATIENCE) {
        var inTime = 0
        for (way in Way.entries) for (role in listOf(Role.SENDER, Role.RECEIVER)) {
            val took = atAllMoments { stopped(way, role, it) }.filterNotNull()
            println("$way by the $role: both sides ended within ${took.maxOrNull()}; ${MOMENTS - took.size} were complete before")
            inTime += took.size
        }
        assertTrue(inTime > Way.entries.size * MOMENTS, "only $inTime stops were in time")
    }

    @Test
    fun `cancelling a coroutine that waits leaves the transfer alone at any moment`() = within(5 * PATIENCE) {
        for (role in listOf(Role.SENDER, Role.RECEIVER)) atAllMoments { moment ->
            val running = started("in-$role-$moment")
            val own = running.end(role)
            val waiting = listOf(
                launch(start = CoroutineStart.UNDISPATCHED) { own.finished() },
                launch(start = CoroutineStart.UNDISPATCHED) { own.event() },
            )
            moment(own, moment)
            waiting.forEach { it.cancel() }
            waiting.joinAll()
            own.finished()
            running.other(role).finished()
            assertArrayEquals(film.readBytes(), folder.resolve("in-$role-$moment/film.mov").readBytes())
        }
    }

    @Test
    fun `a call that waits keeps its object`() = within {
        val running = started("in")
        val ends = listOf(Role.SENDER, Role.RECEIVER).map(running::take)
        val waiting = ends.map { async(start = CoroutineStart.UNDISPATCHED) { it.finished() } }
        ends.forEach { it.close() }
        failure<IllegalStateException> { ends[0].finished() }
        waiting.awaitAll()
        assertArrayEquals(film.readBytes(), folder.resolve("in/film.mov").readBytes())
    }

    @Test
    fun `a coroutine that is resumed by the library can call back`() = within {
        val running = started("in", SLOW)
        val other = running.other(Role.RECEIVER)
        val called = CompletableDeferred<Unit>()
        // This dispatcher continues on the thread of the library that completed the call. An offer is complete at once; the
        // next event of the transfer may only be its end.
        val calling = launch(Dispatchers.Unconfined) {
            val own = running.take(Role.RECEIVER)
            offered(newNode(), film).first.close()
            own.bytes()
            newNode().close()
            own.close()
            called.complete(Unit)
        }
        called.await()
        calling.join()
        failure<WraithException.Cancelled> { other.finished() }
    }

    @Test
    fun `both ends can be awaited together`() = within {
        val running = started("in")
        val ends = listOf(Role.SENDER, Role.RECEIVER).map(running::end)
        withContext(Dispatchers.Default) { (ends + ends).map { async { it.finished() } }.awaitAll() }
        assertArrayEquals(film.readBytes(), folder.resolve("in/film.mov").readBytes())
    }

    @Test
    fun `a node that is shut down starts nothing`() = within {
        val running = started("in", SLOW)
        val (node, receiver) = listOf(Role.SENDER, Role.RECEIVER).map(running.nodes::getValue)
        val (idle, ticket) = offered(node, film)
        val listener = node.listen("${folder.resolve("listen")}", AcceptFilter.ANY_PEER)
        val nextOffer = async(start = CoroutineStart.UNDISPATCHED) { listener.nextOffer() }
        val unanswered = asked(receiver, ticket, folder.resolve("unanswered"))
        node.shutdown()
        node.shutdown()
        failure<WraithException.Cancelled> { idle.finished() }
        failure<WraithException.Cancelled> { running.end(Role.SENDER).finished() }
        failure<WraithException.Cancelled> { running.end(Role.RECEIVER).finished() }
        assertNull(nextOffer.await())
        failure<WraithException.Cancelled> { unanswered.accept(AcceptOptions()).finished() }
        failure<WraithException.Cancelled> { offered(node, film) }
        failure<WraithException.Cancelled> { asked(node, ticket, folder.resolve("nothing")) }
        assertFalse(folder.resolve("nothing").exists())
    }

    @Test
    fun `cancelling a shutdown ends only its wait`() = within {
        val running = started("in", SLOW)
        val node = running.nodes.getValue(Role.SENDER)
        async(start = CoroutineStart.UNDISPATCHED) { node.shutdown() }.cancelAndJoin()
        failure<WraithException.Cancelled> { running.end(Role.SENDER).finished() }
        failure<WraithException.Cancelled> { running.end(Role.RECEIVER).finished() }
    }
}
